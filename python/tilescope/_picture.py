"""Pictures of views."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import Report


class Picture:
    """A picture of a view. Notebooks display it."""

    __slots__ = ("data", "format", "view")

    def __init__(self, data: bytes, format: str, view: str) -> None:
        self.data = data
        self.format = format
        self.view = view

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file."""
        with open(path, "wb") as file:
            file.write(self.data)

    def _repr_png_(self) -> bytes | None:
        return self.data if self.format == "png" else None

    def _repr_svg_(self) -> str | None:
        return self.data.decode() if self.format == "svg" else None

    def __repr__(self) -> str:
        return f"<tilescope.Picture {self.view}: {self.format}, {len(self.data):,} B>"


def draw(
    report: Report,
    view: str,
    *,
    format: str,
    size: tuple[int, int],
    at: str | None,
    theme: str,
    compare: Report | None,
) -> Picture:
    """Draws a view of a report with the program."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from ._program import run

    if format not in ("png", "svg"):
        raise ValueError(f"format is 'png' or 'svg', not {format!r}")
    width, height = size
    with TemporaryDirectory(prefix="tilescope-") as directory:
        file = Path(directory, f"picture.{format}")
        words = ["export", report.path, f"--view={view}", f"--format={format}"]
        words += [f"--size={width}x{height}", f"--theme={theme}", "-o", str(file)]
        words += [f"--at={at}"] if at is not None else []
        words += ["--compare", compare.path] if compare is not None else []
        run(words)
        return Picture(file.read_bytes(), format, view)
