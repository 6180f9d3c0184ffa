"""One model, its options and loader as a spec; its report where Poplar would write it."""

from __future__ import annotations

import pathlib

from .. import simulate
from . import _engine_names, _spec_keys, enums, optim
from ._errors import Error
from ._options import Options

_DIRECTORY = "autoReport.directory"
# Options of the output of Poplar change no program.
_REPORTING = ("autoReport.", "debug.", "profiler.")
# The default of poplibs (ConvOptions.hpp), for IPUs without a value.
_DEFAULT_SHARE = 0.6
_OVERLAPS = {
    enums.OverlapMode.OverlapAccumulationLoop: "inner_loop",
    enums.OverlapMode.OverlapDeviceIterationLoop: "loops",
}


def report_directory(options: Options, training: bool) -> pathlib.Path | None:
    """The directory in which Poplar would write the report of a model; None if it would write none.

    ``POPLAR_ENGINE_OPTIONS`` and ``POPLAR_RUNTIME_OPTIONS`` override the options of the script.
    Each model has a subdirectory, named ``training`` or ``inference`` unless the options name it.
    """
    engine = _engine_options(options)
    wanted = any(
        str(engine.get(name, "false")).lower() == "true"
        for name in ("autoReport.all", "autoReport.outputGraphProfile",
                     "autoReport.outputExecutionProfile")
    )
    if not wanted and _DIRECTORY not in engine:
        return None
    name = options.model_name or ("training" if training else "inference")
    return pathlib.Path(engine.get(_DIRECTORY, ".")) / name


def _engine_options(options: Options) -> dict:
    """Poplar's options: those of the script, overridden by the environment."""
    return {**options._Popart.options.get("engineOptions", {}), **_engine_names.environment()}


def _engine_keys(options: Options) -> dict:
    """Keys of a spec for Poplar's options; options without a key are reported."""
    keys = {}
    for name, value in _engine_options(options).items():
        if name.startswith(_REPORTING):
            continue
        text = str(value)
        value = {"true": True, "false": False}.get(text.lower(), text)
        value = int(text) if text.isdigit() else value
        key = _spec_keys.key_of(name)
        found = None if key is None else _spec_keys.value_for(key, value)
        if found is None:
            options._missing.setdefault(f"engine option {name}")
        else:
            keys[key["path"]] = found
    return keys


def spec_of(exported, options: Options, optimizer, loader, samples: int, training: bool) -> dict:
    """The spec of a model, as nested tables; ``samples`` are those of a micro-batch."""
    keys = {
        "model.onnx": str(exported.path.resolve()),
        "model.batch_size": samples,
        "model.training": training,
        "target.name": options._target,
        "target.type": options._target_type,
        "target.ipus": _ipus(exported.blocks),
        "options.host.framework": "poptorch",
    }
    if any(name.startswith("custom_op ") for name in exported.missing):
        keys["model.allow_unknown"] = True
    if loader is not None:
        keys.update(loader.spec())
    keys.update(_engine_keys(options))
    keys.update(options._spec_keys)
    if len({stage for stage, _ in exported.blocks.values()}) > 1:
        keys["options.execution"] = options._strategy.execution
    if training:
        keys.update(_training_keys(exported, optimizer))
    keys.update(_memory_share(options, keys["target.ipus"]))
    if exported.overlap is not None:
        keys["options.overlap_io"] = _OVERLAPS[exported.overlap]
    return nested(without_idle_sharding(keys))


def without_idle_sharding(keys: dict) -> dict:
    """Keys without the sharding of tensors over a single replica, which PopART leaves out."""
    if keys.get("options.replication_factor", 1) > 1:
        return keys
    idle = ".replicated_tensor_sharding"
    return {path: value for path, value in keys.items() if not path.endswith(idle)}


def run(spec: dict, directory: pathlib.Path):
    """Simulates a spec. Returns the report.

    Raises :class:`Error` with the simulator's message.
    """
    try:
        return simulate(spec, output=directory, progress=False)
    except Exception as error:
        raise Error(f"the model cannot be simulated: {error}") from error


def _ipus(blocks: dict) -> int:
    return 1 + max((ipu for _, ipu in blocks.values()), default=0)


def _training_keys(exported, optimizer) -> dict:
    kind = optim.kind_of(optimizer)
    keys = {"model.optimizer": kind or "adam"}
    if kind is None:
        exported.missing.setdefault(f"{type(optimizer).__name__} (simulated as adam)")
    scale = getattr(optimizer, "loss_scaling", 1.0)
    if scale != 1.0:
        keys["model.loss_scaling"] = scale
    if exported.loss_output is not None:
        keys["model.loss"] = "identity"
        keys["model.loss_output"] = exported.loss_output
    return keys


def _memory_share(options: Options, ipus: int) -> dict:
    given = options.available_memory_proportion
    if not given:
        return {}
    shares = [given.get(ipu, _DEFAULT_SHARE) for ipu in range(ipus)]
    return {"options.available_memory_proportion": shares if len(set(shares)) > 1 else shares[0]}


def nested(keys: dict) -> dict:
    """Dotted keys as the tables of a spec."""
    spec = {}
    for path, value in keys.items():
        *tables, name = path.split(".")
        table = spec
        for part in tables:
            table = table.setdefault(part, {})
        table[name] = value
    return spec
