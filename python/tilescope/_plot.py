"""Figures of topics as pictures."""

from __future__ import annotations

import os


class Plot:
    """A figure of a topic: its full `name`, its `title`, a description (`about`), and the picture
    as `svg`. Notebooks display it."""

    __slots__ = ("name", "title", "about", "svg")

    def __init__(self, name: str, title: str, about: str, svg: str) -> None:
        self.name = name
        self.title = title
        self.about = about
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to an SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        from html import escape

        # At most as wide as the page.
        scroll = '<div style="overflow-x:auto">'
        return f"<figure>{scroll}{self.svg}</div><figcaption>{escape(self.about)}</figcaption></figure>"

    def __repr__(self) -> str:
        return f"<tilescope.Plot {self.name}: {self.title}>"
