"""Commands of the program as functions.

A function takes the arguments of its command as positional arguments, and its options as
keywords. `tune("mnist_pipeline", objective="memory", set={"options.num_io_tiles": 64}, jobs=2)`
is `tilescope tune mnist_pipeline --objective memory --set options.num_io_tiles=64 --jobs 2`.
`True` passes an option without a value, a list repeats it, and `None` leaves it out. The program
checks the options, and suggests the nearest names for unknown ones.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _toml
from ._program import run
from ._report import Report, open as _open
from ._simulate import _source

#: Every command of the program, with its counterpart here: the name of a function of this package,
#: or of a method of `Report` or `Comparison`. Commands for terminals only have none.
COMMANDS: dict[str, str | None] = {
    "simulate": "simulate",
    "specs": "specs",
    "sensitivity": "sensitivity",
    "sweep": "sweep",
    "tune": "tune",
    "reproduce": "reproduce",
    "summary": "Report.summary",
    "why": "Report.why",
    "insights": "Report.insights",
    "find": "Report.find",
    "query": "Report.sql",
    "compare": "Report.compare",
    "series": "series",
    "bisect": "bisect",
    "mcp": None,
    "calibrate": "Report.calibrate",
    "verify": "Report.verify",
    "export": "Report.export",
    "convert": "convert",
    "samples": "Report.samples",
    "slice": "Report.slice",
    "report": "Report.html",
    "validate": "validate",
    "model": "model",
    "onnx": "onnx",
    "completions": None,
    "man": None,
    "help": None,
}

# Exit codes of commands that have an answer and a verdict, such as an inconsistency for `verify`.
_ANSWERS = {"verify": (0, 1)}


def specs() -> dict[str, str]:
    """Names and descriptions of the bundled specs."""
    found = {}
    for line in run(["specs"])[0].splitlines():
        name, _, about = line.strip().partition("  ")
        if line.startswith("  ") and about:
            found[name] = about.strip()
    return found


def keys() -> dict[str, dict[str, Any]]:
    """Every key of a spec by its dotted path, with its values, default and meaning."""
    return {key["path"]: key for key in ask("specs", keys=True)}


def tune(spec: Any, **options: Any) -> dict[str, Any]:
    """The path of a search for a better spec, as `tilescope tune --json` prints it."""
    return _of_specs("tune", [spec], options)


def sensitivity(spec: Any, **options: Any) -> dict[str, Any]:
    """Gains of faster machine resources and faster operations (`tilescope sensitivity`)."""
    return _of_specs("sensitivity", [spec], options)


def bisect(good: Any, bad: Any, **options: Any) -> dict[str, Any]:
    """The options that explain the difference between two specs (`tilescope bisect`)."""
    return _of_specs("bisect", [good, bad], options)


def series(*runs: Any, **options: Any) -> dict[str, Any]:
    """Figures of many reports, and their change points (`tilescope series`)."""
    words = [run.path if isinstance(run, Report) else os.fspath(run) for run in runs]
    return ask("series", *words, **options)


def reproduce() -> list[dict[str, Any]]:
    """Published and simulated figures of programs (`tilescope reproduce`)."""
    return ask("reproduce")


def validate(file: str | os.PathLike[str]) -> Any:
    """Errors of the cost model on measured operations (`tilescope validate`)."""
    return ask("validate", os.fspath(file))


def model(*specs: Any, **options: Any) -> Any:
    """Constants of the cost model that are on no data sheet (`tilescope model`)."""
    return _of_specs("model", specs, options)


def onnx(file: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """The content of an ONNX file, and the treatment of each operator (`tilescope onnx`)."""
    return ask("onnx", os.fspath(file), **options)


def convert(profile: str | os.PathLike[str], output: str | os.PathLike[str]) -> Report:
    """Converts a profile of another tool to a report in the directory `output`."""
    run(["convert", os.fspath(profile), "-o", os.fspath(output)])
    return _open(output)


def calibrated(report: Report, spec: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Compares a measured report with its simulation: see `Report.calibrate`."""
    with tempfile.TemporaryDirectory(prefix="tilescope-") as scratch:
        words = [report.path, *([] if spec is None else [_source(spec, Path(scratch))])]
        return ask("calibrate", *words, **{"output": Path(scratch, "fit.toml"), **options})


def ask(command: str, *subjects: str, **options: Any) -> Any:
    """The JSON output of a command."""
    words = [command, *flags(options), "--json", "--", *subjects]
    return json.loads(run(words, codes=_ANSWERS.get(command, (0,)))[0])


def flags(options: Mapping[str, Any]) -> list[str]:
    """Converts keyword arguments to options of a command line."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-").strip("-")
        if isinstance(value, Mapping):
            values = [f"{key}={_toml.value(of)}" for key, of in value.items()]
        elif isinstance(value, (list, tuple)):
            values = list(value)
        else:
            values = [value]
        for of in values:
            if of is True:
                words.append(flag)
            elif of is not None and of is not False:
                words.append(f"{flag}={os.fspath(of) if isinstance(of, os.PathLike) else of}")
    return words


def _of_specs(command: str, specs: Any, options: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="tilescope-") as scratch:
        words = []
        for number, spec in enumerate(specs):
            directory = Path(scratch, str(number))
            directory.mkdir()
            words.append(_source(spec, directory))
        return ask(command, *words, **options)
