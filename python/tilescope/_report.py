"""Reports."""

from __future__ import annotations

import os

from . import _tilescope
from ._table import Table

# As in `typing`, which takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._picture import Picture
    from ._plot import Plot
    from .types import (
        ComparisonSummary,
        Finding,
        Summary,
        SummaryTarget,
        TableSchema,
        TopicAnswer,
        Why,
    )


def open(path: str | os.PathLike[str]) -> Report:
    """Opens a directory that contains `profile.pop`, or such a file under any name.

    Opening takes milliseconds at any size, because data is read on demand.

    Raises `ReportError` with the path and the problem.
    """
    return Report(_tilescope.open(path))


class Report:
    """An open report. Reading never changes the file."""

    # A temporary report is deleted with the object.
    __slots__ = ("_core", "__weakref__")

    def __init__(self, core: _tilescope.Report) -> None:
        self._core = core

    @property
    def path(self) -> str:
        """Path of the `profile.pop` file."""
        return os.fspath(self._core.path)

    @property
    def meta(self) -> dict[str, str]:
        """Metadata of the file, such as `format` and `generator`; empty for files of other
        tools."""
        return self._core.meta

    @property
    def spec(self) -> str | None:
        """The text of the spec that the report was made from."""
        return self.meta.get("spec")

    @property
    def options(self) -> dict[str, str]:
        """Options of the engine."""
        return dict(self._core.options())

    @property
    def notes(self) -> list[str]:
        """Notes of the compiler."""
        return self._core.notes()

    @property
    def warnings(self) -> list[str]:
        """Warnings about the file so far."""
        return self._core.warnings

    @property
    def target(self) -> SummaryTarget:
        """The machine: `num_ipus`, `tiles_per_ipu`, `bytes_per_tile`, `clock_hz`, …"""
        return self.summary()["target"]

    def summary(self) -> Summary:
        """The key figures, as in `tilescope summary --json`. Bytes are per replica."""
        return _json(self._core.summary_json())

    def insights(self, prove: bool = False, **options: Any) -> list[Finding]:
        """The findings, most important first: `rule`, `sentence`, `advice`, `gain`, …

        With `prove`, each proposal is simulated, and `measured` is its gain.
        """
        if not prove and not options:
            return _json(self._core.insights_json())
        from ._commands import ask

        return ask("insights", self.path, prove=prove, **options)

    def why(self, at: str | None = None, **options: Any) -> Why:
        """The critical path of the run, and slack and lead of each lane. With `at`
        (`"STEP:IPU:REPLICA"`), the cause of the length of a step."""
        from ._commands import ask

        return ask("why", self.path, at=at, **options)

    def verify(self) -> list[dict[str, Any]]:
        """The inconsistencies of the report; empty if it is consistent."""
        from ._commands import ask

        return ask("verify", self.path)["findings"]

    def samples(self, by: str = "operation", **options: Any) -> list[dict[str, Any]]:
        """Measurements of single tiles, grouped `by` operation, tile, phase, …"""
        from ._commands import flags
        from ._program import run

        words = ["samples", *flags({"by": by, "format": "json", **options}), "--", self.path]
        return _json(run(words)[0])

    def calibrate(self, spec: Any = None, **options: Any) -> dict[str, Any]:
        """Compares this measured run with its simulation, and fits constants of the cost model to
        it. The constants are written to the file `output`, if given."""
        from ._commands import calibrated

        return calibrated(self, spec, options)

    def export(self, output: str | os.PathLike[str], view: str | None = None, **options: Any) -> str:
        """Writes a view as a picture, a table as CSV, Parquet or Arrow, or a trace for Perfetto or
        Chrome, in the format `format` or that of the file name. Returns the path of the file."""
        from pathlib import Path

        from ._commands import flags
        from ._program import run

        ending = Path(output).suffix.lstrip(".")
        options = {"view": view, "format": ending or None, **options}
        run(["export", *flags(options), "-o", os.fspath(output), "--", self.path])
        return os.fspath(output)

    def slice(
        self,
        output: str | os.PathLike[str],
        cycles: tuple[int, int],
        ipus: Sequence[int] | None = None,
    ) -> Report:
        """Writes a part of the run as a separate report to the directory `output`: the steps that
        share a cycle with the window `cycles`, on all IPUs or some."""
        from ._program import run

        words = ["slice", self.path, f"--range={cycles[0]}..{cycles[1]}", "-o", os.fspath(output)]
        words += [] if ipus is None else ["--ipus=" + ",".join(str(ipu) for ipu in ipus)]
        run(words)
        return open(output)

    def html(self, output: str | os.PathLike[str], target: Report | None = None) -> str:
        """Writes the report, or a comparison with another one, as one self-contained page. Returns
        the path of the file."""
        from ._program import run

        run(["report", self.path, *([target.path] if target else []), "-o", os.fspath(output)])
        return os.fspath(output)

    def close(self) -> None:
        """Closes the file and releases the memory of the report, which cannot be used
        afterwards."""
        try:
            del self._core
        except (AttributeError, ValueError):
            # It is already closed.
            pass

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "_core":
            raise ValueError("the report is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def schema(self) -> dict[str, TableSchema]:
        """The tables for `sql`, each with `about` (the meaning of a row) and its `columns`: `name`,
        `type` in SQL, `unit` and `about`. The result of `table` has the same description."""
        return _json(self._core.schema_json())

    def find(self, query: str, limit: int = 1000) -> Table:
        """Finds steps, operations, programs, variables, tensors and vertices by name and filter,
        the most expensive of each list first: `in:steps Convolve cycles>1k`.

        Raises `QueryError` if the query is invalid.
        """
        hits = _json(self._core.find_json(query, limit))["hits"]
        names = ("list", "id", "name", "type", "ipu", "count", "cycles", "bytes")
        columns = {name: [hit[name] for hit in hits] for name in names}
        return Table.from_columns(columns, f"find {query}")

    @property
    def topics(self) -> dict[str, str]:
        """Names of the topics, with the question that each answers."""
        return dict(self._core.topics())

    def topic(self, name: str) -> TopicAnswer:
        """All data of a topic: `facts`, `figures` (bars, points or lines with axes and units) and
        `tables`, as in `tilescope export --view NAME --format json`.

        Raises `QueryError` if the topic is unknown.
        """
        return _json(self._core.topic_json(name))

    @property
    def tables(self) -> dict[str, str]:
        """Names of the tables, with the meaning of a row. Names with a slash are the tables of the
        views."""
        return dict(self._core.tables())

    def table(
        self,
        name: str,
        *,
        ipus: Sequence[int] | None = None,
        cycles: tuple[int, int] | None = None,
        group_by: str | None = None,
    ) -> Table:
        """A table by name; see `tables`.

        `group_by` sums the rows of a table of operations: one row for each `block`, `layer` (kind
        of layer, `layer*/ff2/wu`), `part`, `operator`, `pass`, `stage` or `ipu`.

        `ipus` and `cycles` (first, and first behind the last) select executed steps: those of
        `steps` that share a cycle with the window.

        Raises `QueryError` if the table is unknown.
        """
        selected = None if ipus is None else list(ipus)
        return Table(self._core.table(name, selected, cycles, group_by), name)

    def sql(
        self,
        query: str,
        parameters: Sequence[Any] | dict[str, Any] = (),
        *,
        timeout: float = 60.0,
    ) -> Table:
        """The result of a read-only SQL query; `docs/format.md` lists the tables.

        Raises `QueryError` if the query is invalid or takes longer than `timeout` seconds.
        """
        from ._sql import ask

        return ask(self._core, query, parameters, timeout)

    def compare(self, target: Report, per: str | None = None) -> Comparison:
        """Compares this report, as the source, with another one, as the target.

        Cycles are per sample if both reports record their samples, otherwise per run; `per`
        selects another unit of work (`sample`, `update`, `run`, …).
        """
        return Comparison(self, target, per)

    @property
    def figures(self) -> dict[str, str]:
        """Names and descriptions of the figures, for example `limits/roofline`."""
        return dict(self._core.figures())

    def plot(self, name: str, *, theme: str = "light") -> Plot:
        """A figure of a topic as SVG, from the same numbers as in the window and on pages; for a
        topic such as `limits`, its first figure. Notebooks display it without further libraries.

        Raises `QueryError` if the figure is unknown.
        """
        from ._plot import Plot

        if theme not in ("light", "dark"):
            raise ValueError(f"theme is light or dark, not {theme!r}")
        return Plot(*self._core.figure_svg(name, theme == "dark"))

    def picture(
        self,
        view: str = "execution-trace",
        *,
        format: str = "png",
        size: tuple[int, int] = (1600, 900),
        at: str | None = None,
        theme: str = "light",
        compare: Report | None = None,
    ) -> Picture:
        """A picture of a view, as the window draws it. Notebooks display it.

        `format` is `png` or `svg`; `at` is a link copied in the window.
        """
        from ._picture import draw

        return draw(self, view, format=format, size=size, at=at, theme=theme, compare=compare)

    def __repr__(self) -> str:
        return f"<tilescope.Report {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # The other process opens the file itself; a temporary report stays with its creator.
        return open, (self.path,)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in _lines(self.summary())
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table>{rows}</table>{notes}<code>{escape(self.path)}</code>"


class Comparison:
    """Two reports, with their figures as source, target and difference. A difference is target -
    source; its percentage is relative to the source."""

    __slots__ = ("_core", "source", "target")

    def __init__(self, source: Report, target: Report, per: str | None = None) -> None:
        self._core = _tilescope.compare(source._core, target._core, per)
        self.source = source
        self.target = target

    def summary(self) -> ComparisonSummary:
        """The result: `verdict` in sentences, `distinction` (whether the difference exceeds the
        errors of the model) and `normalization` (the unit of work of the figures)."""
        return _json(self._core.overview_json())

    @property
    def views(self) -> list[str]:
        """Names of the comparisons: the overview, and every view."""
        return self._core.views()

    def tables(self, view: str = "overview") -> dict[str, str]:
        """Names and titles of the tables of a view."""
        return {f"{view}/{name}": title for name, title in self._core.tables(view)}

    def table(self, name: str = "overview") -> Table:
        """A table of differences: `memory/variables`, or the first of a view for `memory`."""
        return Table(self._core.table(name), name)

    def check(self, *gates: str) -> list[Violation]:
        """The violated gates, in order; empty if all pass.

        A gate is a condition that must not be true: `cycles > +2%`, `memory.max_tile_including_gaps
        > 600 KiB`. It has a figure (a dotted path of `summary()`, or `cycles`, `throughput`,
        `memory`, `max_tile`), `>`, `>=`, `<`, `<=` or `==`, and a number with its unit. A number
        with a sign is a change relative to the source. A figure that a report lacks violates the
        gate.

        Raises `QueryError`, which marks the position, if a gate is invalid.
        """
        return [Violation(**of) for of in _json(self._core.check_json(list(gates)))]

    def markdown(self, limit: int = 10) -> str:
        """The changes as Markdown for a pull request: the verdict and tables of up to `limit`
        rows."""
        return self._core.markdown(limit)

    def __repr__(self) -> str:
        return f"<tilescope.Comparison {self.source.path} -> {self.target.path}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.summary()['verdict'])}</p>{self.table()._repr_html_()}"


class Violation:
    """A violated gate: `gate` as given, its `figure` as a path of `summary()`, `source` and
    `target` (None if a report lacks the figure), their unit of work (`per`), and a `sentence`."""

    __slots__ = ("gate", "figure", "per", "source", "target", "sentence")

    def __init__(
        self,
        gate: str,
        figure: str,
        per: str | None,
        source: float | None,
        target: float | None,
        sentence: str,
    ) -> None:
        self.gate = gate
        self.figure = figure
        self.per = per
        self.source = source
        self.target = target
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<tilescope.Violation {self.sentence}>"


def _json(text: str) -> Any:
    import json

    return json.loads(text)


def _lines(summary: Summary) -> list[tuple[str, str]]:
    """The main figures of a report, as the command line prints them after a simulation."""
    target, memory, run = summary["target"], summary["memory"], summary["execution"]
    kind = "IPU" if target["type"] == "ipu" else "IPU Model"
    lines = [("target", f"{target['num_ipus']} x {target['architecture']} ({kind})")]
    if memory is not None:
        fullest = f"{memory['max_tile_including_gaps']:,} B of {target['bytes_per_tile']:,} B"
        lines.append(("memory", f"{memory['total_excluding_gaps']:,} B in use"))
        lines.append(("fullest tile", fullest))
        if memory["out_of_memory_tiles"]:
            lines.append(("out of memory", f"{memory['out_of_memory_tiles']:,} tiles"))
    if run is None:
        return [*lines, ("run", "the program was compiled but not run")]
    lines.append(("run", f"{run['total_cycles']:,} cycles, {run['seconds']:.6g} s"))
    if run["samples_per_second"]:
        lines.append(("throughput", f"{run['samples_per_second']:,.0f} samples per second"))
    return lines


def __getattr__(name: str) -> Any:
    if name == "Picture":
        from ._picture import Picture

        return Picture
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
