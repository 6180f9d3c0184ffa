"""Simulations."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _toml, _tilescope
from ._program import Running, SpecError, run
from ._report import Report


def simulate(
    spec: Any,
    inputs: Any = None,
    *,
    set: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int], None] = True,
    training: bool | None = None,
    loss: str | Callable[..., Any] | None = None,
    optimizer: Any = None,
    target: str | None = None,
    ipus: int | None = None,
    stages: str | Sequence[Any] | Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """Simulates a spec or a model, and opens the report.

    `spec` is the name of a bundled spec, the path of a TOML or ONNX file, a dict of tables, a
    report (its spec is simulated again), an `onnx.ModelProto`, or a torch module with the `inputs`
    of one micro-batch: a tensor, a tuple, or a dict of keywords.

    `training` runs backward passes and updates, with `optimizer` (a name, or one of torch's).
    `loss` is a loss of a spec (`"cross_entropy"`, …), or for a module a function of its result and
    its last input; without `loss`, the model returns its own. `target` and `ipus` are the machine.
    `stages` are a list of lists of blocks, a dict from blocks to IPUs, in order, or `"balanced"`;
    blocks of a module are its submodules by path, or its `poptorch.Block`s. `options` and `set`
    override keys: `options={"gradient_accumulation": 20}` is
    `set={"options.gradient_accumulation": 20}`.

    The report is written to the directory `output`; without `output`, it is deleted with the
    object. `progress=True` shows a bar; a function is called with the percentage.

    Raises `SpecError` with key, file, line and a suggestion, and `SimulationError` if the
    simulation fails. A program that does not fit in memory is a report without a run:
    `report.summary()["memory"]["out_of_memory_tiles"]`.
    """
    show = _bar() if progress is True else (progress or None)
    wishes = Wishes(training, loss, optimizer, target, ipus, stages, {**(options or {})})
    if is_module(spec):
        from ._module import exported

        make = functools.partial(exported, spec, inputs, wishes)
    elif inputs is not None:
        raise TypeError(
            "inputs are for torch modules; to override keys of a spec, use set={…}"
        )
    else:
        overrides = {**wishes.keys(), **(set or {})}
        report, said = _simulate(spec, overrides, output, show, None)
        return _warned(report, said)
    name = type(spec).__name__
    fill = functools.partial(_model, make, overrides=set or {}, progress=show)
    return _warned(*_with_directory(output, name, fill))


def _warned(report: Report, said: list[str]) -> Report:
    for warning in said:
        warnings.warn(warning, stacklevel=3)
    return report


def _model(
    make: Callable[[Path], tuple[dict[str, Any], list[str]]],
    directory: str | os.PathLike[str],
    overrides: Mapping[str, Any],
    progress: Callable[[int], None] | None,
) -> tuple[Report, list[str]]:
    """Simulates a model; its file is stored beside its report."""
    spec, said = make(Path(directory))
    report, more = _simulate(spec, overrides, directory, progress, None)
    return report, [*said, *more]


def _with_directory(
    output: str | os.PathLike[str] | None,
    name: str,
    fill: Callable[[str | os.PathLike[str]], tuple[Report, list[str]]],
) -> tuple[Report, list[str]]:
    """Fills a directory with a report; a temporary directory is deleted with the report.

    Windows and pictures name a report after its directory, `name`.
    """
    if output is not None:
        return fill(output)
    kept = tempfile.mkdtemp(prefix="tilescope-")
    try:
        report, said = fill(os.path.join(kept, name))
    except BaseException:
        shutil.rmtree(kept, ignore_errors=True)
        raise
    weakref.finalize(report, shutil.rmtree, kept, ignore_errors=True)
    return report, said


def is_module(model: Any) -> bool:
    """True if an object is a torch module; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


@dataclasses.dataclass
class Wishes:
    """The arguments of `simulate` other than the model."""

    training: bool | None
    loss: str | Callable[..., Any] | None
    optimizer: Any
    target: str | None
    ipus: int | None
    stages: str | Sequence[Any] | Mapping[str, int] | None
    options: dict[str, Any]

    def keys(self) -> dict[str, Any]:
        """The arguments as keys of a spec."""
        if self.loss is not None and not isinstance(self.loss, str):
            raise TypeError("a loss function requires a torch module; pass the name of a loss")
        named = {
            "model.training": self.training,
            "model.loss": self.loss,
            "target.name": self.target,
            "target.ipus": self.ipus,
        }
        found = {key: value for key, value in named.items() if value is not None}
        if self.optimizer is not None:
            found["model.optimizer"] = self.optimizer_name()
        if self.stages == "balanced":
            found["options.auto_stage"] = "balanced"
        elif self.stages is not None:
            found["options.stages"] = [
                {"blocks": blocks, "ipu": ipu} for blocks, ipu in self.stage_list()
            ]
        found.update({f"options.{key}": value for key, value in self.options.items()})
        return found

    def optimizer_name(self) -> str:
        """The name of the optimiser in a spec."""
        if isinstance(self.optimizer, str):
            return self.optimizer
        if "torch" in sys.modules:
            from .poptorch.optim import kind_of

            kind = kind_of(self.optimizer)
            if kind is not None:
                return kind
        raise TypeError(
            "an optimizer is a name (sgd, sgd_momentum, adam, adamw, lamb) or one of torch's SGD, "
            f"Adam, AdamW, not {type(self.optimizer).__name__}"
        )

    def stage_list(self) -> list[tuple[list[str], int]]:
        """Blocks and IPU of each stage, in order."""
        if isinstance(self.stages, str):
            raise ValueError(f"stages are a list, a dict or \"balanced\", not {self.stages!r}")
        if not isinstance(self.stages, (Mapping, list, tuple)):
            kind = type(self.stages).__name__
            raise TypeError(f"stages are a list, a dict or \"balanced\", not {kind}")
        if not isinstance(self.stages, Mapping):
            named = [[of] if isinstance(of, str) else of for of in self.stages]
            lists = all(isinstance(stage, (list, tuple)) for stage in named)
            if not lists or not all(isinstance(block, str) for stage in named for block in stage):
                raise TypeError('stages are lists of names: [["layer1"], ["layer2", "head"]]')
            named = [list(stage) for stage in named]
            return [(stage, ipu) for ipu, stage in enumerate(named)]
        stages: list[tuple[list[str], int]] = []
        for block, ipu in self.stages.items():
            if isinstance(ipu, bool) or not isinstance(ipu, int) or ipu < 0:
                raise TypeError(f"the IPU of {block!r} is a number from 0, not {ipu!r}")
            if not stages or stages[-1][1] != ipu:
                stages.append(([], ipu))
            stages[-1][0].append(block)
        return stages


def _simulate(
    spec: Any,
    overrides: Mapping[str, Any],
    output: str | os.PathLike[str] | None,
    progress: Callable[[int], None] | None,
    running: Running | None,
) -> tuple[Report, list[str]]:
    if output is None:
        again = functools.partial(_simulate, spec, overrides, progress=progress, running=running)
        return _with_directory(None, _name(spec), again)
    if hasattr(spec, "SerializeToString"):
        spec = {"model": {"onnx": _written(spec, Path(output))}}
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


def _name(spec: Any) -> str:
    """The name of the report of a spec."""
    if isinstance(spec, Mapping) and isinstance(spec.get("model"), Mapping):
        spec = spec["model"].get("name") or spec["model"].get("onnx")
    stem = Path(spec).stem if isinstance(spec, (str, os.PathLike)) and "\0" not in str(spec) else ""
    return re.sub(r"[^\w.-]", "_", stem)[:60].strip(".") or "report"


def _written(model: Any, directory: Path) -> str:
    """Writes an `onnx.ModelProto` beside its report. Returns the path of the file."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return str(file.resolve())


def _source(spec: Any, scratch: Path) -> str:
    """The argument of the command line for a spec."""
    if isinstance(spec, Report):
        if spec.spec is None:
            raise ValueError(f"the report does not record its spec: {spec.path}")
        text = spec.spec
    elif isinstance(spec, Mapping):
        text = _toml.document(spec)
    elif isinstance(spec, (str, os.PathLike)):
        return os.fspath(spec)
    else:
        raise TypeError(
            "a spec is a name, a path, a dict, a report, an onnx.ModelProto or a torch.nn.Module, "
            f"not {type(spec).__name__}"
        )
    file = scratch / "spec.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def _bar() -> Callable[[int], None] | None:
    """A progress line on stderr, if that is a terminal."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None

    def show(percent: int) -> None:
        end = "\n" if percent >= 100 else ""
        bar = ("=" * (percent * 40 // 100)).ljust(40)
        print(f"\rsimulating [{bar}] {percent:3} %", end=end, file=sys.stderr, flush=True)

    return show
