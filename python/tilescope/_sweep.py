"""Sweeps: one spec, many values."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ._program import Running, SimulationError, SpecError
from ._report import Report
from ._simulate import _simulate
from ._table import Table

# Figures with their 90 % interval in columns such as `cycles_low` and `cycles_high`; None if
# unknown.
BANDED = ("cycles", "seconds", "samples_per_second", "max_tile_bytes")
# Figures of a point, after the varied keys.
FIGURES = (
    "fits",
    *(f"{name}{end}" for name in BANDED for end in ("", "_low", "_high")),
    "total_bytes",
    "out_of_memory_tiles",
    "report",
    "error",
)


def sweep(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Report,
    vary: Mapping[str, Sequence[Any]],
    where: str | None = None,
    jobs: int | Any | None = None,
    set: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Table:
    """Simulates a spec with every combination of values: a row for each, in the order of `vary`.

    `where="fits"` leaves out points that are refused or do not fit in memory; without it, such rows
    have no cycles, and `error` is the reason. `jobs` is the number of parallel simulations (by
    default the number of processors - 2, at least one), or an executor: an object with
    `submit(function, *arguments)` that returns futures with `result()`, such as those of
    `concurrent.futures` or a Dask client. With `output`, reports are written to directories there,
    and `report` has their names.

    >>> ts.sweep("mnist_pipeline", {"options.num_io_tiles": [32, 64]}, where="fits").to_pandas()
    """
    if where not in (None, "fits"):
        raise ValueError(f"where is 'fits' or None, not {where!r}")
    keys = list(vary)
    taken = [key for key in keys if key in FIGURES]
    if taken:
        raise ValueError(f"{taken[0]} is a figure, not a key of a spec")
    for key, values in vary.items():
        if isinstance(values, (str, bytes)):
            raise TypeError(f"the values of {key} must be a list, not a string")
    points = [dict(zip(keys, values)) for values in itertools.product(*vary.values())]
    calls = [
        (_portable(spec), {**(set or {}), **point}, _directory(output, number))
        for number, point in enumerate(points)
    ]
    if jobs is None or isinstance(jobs, int):
        figures = _run_here(calls, jobs)
    else:
        futures = [jobs.submit(point_figures, *call) for call in calls]
        figures = [future.result() for future in futures]
    rows = [{**point, **found} for point, found in zip(points, figures)]
    if where == "fits":
        rows = [row for row in rows if row["fits"]]
    names = [*keys, *FIGURES]
    return Table.from_columns({name: [row[name] for row in rows] for name in names}, "sweep")


def point_figures(
    spec: Any, overrides: Mapping[str, Any], output: str | None, running: Running | None = None
) -> dict[str, Any]:
    """Simulates one point. Executors call it: its arguments and its result can be pickled."""
    try:
        report, _ = _simulate(spec, overrides, output, None, running)
    except (SpecError, SimulationError) as error:
        return {**dict.fromkeys(FIGURES), "fits": False, "error": str(error)}
    summary = report.summary()
    memory, execution = summary["memory"], summary["execution"] or {}
    tiles = memory["out_of_memory_tiles"]
    bands = {**(summary["confidence"] or {}), "max_tile_bytes": memory["fullest_tile"]}
    ends = {
        f"{name}_{end}": (bands.get(name) or {}).get(end) for name in BANDED for end in ("low", "high")
    }
    return {
        "fits": tiles == 0,
        "cycles": execution.get("total_cycles"),
        "seconds": execution.get("seconds"),
        "samples_per_second": execution.get("samples_per_second"),
        "max_tile_bytes": memory["max_tile_including_gaps"],
        **ends,
        "total_bytes": memory["total_excluding_gaps"],
        "out_of_memory_tiles": tiles,
        "report": output,
        "error": f"does not fit in memory: {tiles} tiles exceed their memory" if tiles else None,
    }


def _run_here(calls: Sequence[tuple[Any, ...]], jobs: int | None) -> list[dict[str, Any]]:
    """Simulates in processes on this machine; an interrupt ends all of them."""
    workers = jobs if jobs is not None else max(1, (os.cpu_count() or 1) - 2)
    if workers < 1:
        raise ValueError(f"jobs must be at least 1, not {workers}")
    running = Running()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(point_figures, *call, running) for call in calls]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.kill()
            raise


def _portable(spec: Any) -> Any:
    """A spec that other processes find from any working directory."""
    if isinstance(spec, (str, os.PathLike)) and Path(spec).exists():
        return str(Path(spec).resolve())
    return spec


def _directory(output: str | os.PathLike[str] | None, number: int) -> str | None:
    if output is None:
        return None
    return str(Path(output, f"{number:04}").resolve())
