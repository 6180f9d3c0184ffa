"""Simulations."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _toml, _tilescope
from ._program import Running, SpecError, run
from ._report import Report


def simulate(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Report,
    set: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int], None] = True,
) -> Report:
    """Simulates a spec and opens the report.

    `spec` is the name of a bundled spec, the path of a TOML or ONNX file, a dict of tables, or a
    report, whose spec is simulated again. `set` overrides keys:
    `{"options.gradient_accumulation": 20}`. The report is kept in the directory `output`; without
    one it goes with the object. `progress` shows a bar, or is called with the percentage.

    Raises `SpecError` with key, file, line and what was probably meant, and `SimulationError`
    where the simulation fails. A program that does not fit in memory is a report without a run:
    `report.summary()["memory"]["out_of_memory_tiles"]`.
    """
    show = _bar() if progress is True else (progress or None)
    report, said = _simulate(spec, set or {}, output, show, None)
    for warning in said:
        warnings.warn(warning, stacklevel=2)
    return report


def _simulate(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Report,
    overrides: Mapping[str, Any],
    output: str | os.PathLike[str] | None,
    progress: Callable[[int], None] | None,
    running: Running | None,
) -> tuple[Report, list[str]]:
    if output is None:
        kept = tempfile.mkdtemp(prefix="tilescope-")
        try:
            report, said = _simulate(spec, overrides, kept, progress, running)
        except BaseException:
            shutil.rmtree(kept, ignore_errors=True)
            raise
        weakref.finalize(report, shutil.rmtree, kept, ignore_errors=True)
        return report, said
    with tempfile.TemporaryDirectory(prefix="tilescope-") as scratch:
        words = ["simulate", "-o", os.fspath(output)]
        for key, of in overrides.items():
            words += ["--set", f"{key}={_toml.value(of)}"]
        source = _source(spec, Path(scratch))
        try:
            _, said = run([*words, "--", source], progress, running)
        except SpecError as error:
            # A dict has no file and no lines.
            place = re.escape(source) + r":\d+: " if isinstance(spec, Mapping) else r"\A\Z"
            raise SpecError(re.sub(place, "", str(error))) from None
    return Report(_tilescope.open(output)), said


def _source(spec: Any, scratch: Path) -> str:
    """What the command line takes for a spec."""
    if isinstance(spec, Report):
        if spec.spec is None:
            raise ValueError(f"the report does not say from which spec it was made: {spec.path}")
        text = spec.spec
    elif isinstance(spec, Mapping):
        text = _toml.document(spec)
    elif isinstance(spec, (str, os.PathLike)):
        return os.fspath(spec)
    else:
        raise TypeError(
            "a spec is a name, a path, a dict or a report, not "
            f"{type(spec).__name__}; a model of torch is exported with torch.onnx.export first"
        )
    file = scratch / "spec.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def _bar() -> Callable[[int], None] | None:
    """A line on stderr, where a person sees it."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None

    def show(percent: int) -> None:
        end = "\n" if percent >= 100 else ""
        bar = ("=" * (percent * 40 // 100)).ljust(40)
        print(f"\rsimulating [{bar}] {percent:3} %", end=end, file=sys.stderr, flush=True)

    return show
