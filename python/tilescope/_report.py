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
    """Opens a directory that holds a `profile.pop`, or such a file under any name.

    Takes milliseconds at any size: every answer is read when it is first asked for.

    Raises `ReportError` with the path and what is wrong with the file.
    """
    return Report(_tilescope.open(path))


class Report:
    """An open report. Reading never changes the file."""

    # A report that nobody asked to keep is removed with the object.
    __slots__ = ("_core", "__weakref__")

    def __init__(self, core: _tilescope.Report) -> None:
        self._core = core

    @property
    def path(self) -> str:
        """Path of the `profile.pop` file."""
        return os.fspath(self._core.path)

    @property
    def meta(self) -> dict[str, str]:
        """Facts about the file itself, such as `format` and `generator`; empty for files that
        other tools wrote."""
        return self._core.meta

    @property
    def spec(self) -> str | None:
        """The spec the report was made from, as it was written."""
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
        """What was odd about the file so far."""
        return self._core.warnings

    @property
    def target(self) -> SummaryTarget:
        """The machine: `num_ipus`, `tiles_per_ipu`, `bytes_per_tile`, `clock_hz`, …"""
        return self.summary()["target"]

    def summary(self) -> Summary:
        """The key figures, as `tilescope summary --json` prints them. Bytes are of one replica."""
        return _json(self._core.summary_json())

    def insights(self, prove: bool = False, **options: Any) -> list[Finding]:
        """What is worth improving, the most important first: `rule`, `sentence`, `advice`, `gain`,
        …

        With `prove` each proposal is simulated, and `measured` says what it gains.
        """
        if not prove and not options:
            return _json(self._core.insights_json())
        from ._commands import ask

        return ask("insights", self.path, prove=prove, **options)

    def why(self, at: str | None = None, **options: Any) -> Why:
        """What the run waits for: its critical path, and slack and lead of each lane. With `at`
        (`"STEP:IPU:REPLICA"`) why a step takes as long as it does."""
        from ._commands import ask

        return ask("why", self.path, at=at, **options)

    def verify(self) -> list[dict[str, Any]]:
        """Laws that the report breaks; none where it is consistent."""
        from ._commands import ask

        return ask("verify", self.path)["findings"]

    def samples(self, by: str = "operation", **options: Any) -> list[dict[str, Any]]:
        """What was measured of single tiles, put together `by` operation, tile, phase, …"""
        from ._commands import flags
        from ._program import run

        words = ["samples", *flags({"by": by, "format": "json", **options}), "--", self.path]
        return _json(run(words)[0])

    def calibrate(self, spec: Any = None, **options: Any) -> dict[str, Any]:
        """This report of a measured run beside its simulation, with constants of the cost model
        fitted to it. They are kept in the file `output`, if one is named."""
        from ._commands import calibrated

        return calibrated(self, spec, options)

    def export(self, output: str | os.PathLike[str], view: str | None = None, **options: Any) -> str:
        """Writes a view as a picture, a table as CSV, Parquet or Arrow, or a trace for Perfetto or
        Chrome, as `format` says or the name ends; gives the path of the file."""
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
        """A part of the run as a report of its own, in the directory `output`: what shares a cycle
        with the window `cycles`, on all IPUs or some."""
        from ._program import run

        words = ["slice", self.path, f"--range={cycles[0]}..{cycles[1]}", "-o", os.fspath(output)]
        words += [] if ipus is None else ["--ipus=" + ",".join(str(ipu) for ipu in ipus)]
        run(words)
        return open(output)

    def html(self, output: str | os.PathLike[str], target: Report | None = None) -> str:
        """Writes the report, or it and another one compared, as one self-contained page; gives the
        path of the file."""
        from ._program import run

        run(["report", self.path, *([target.path] if target else []), "-o", os.fspath(output)])
        return os.fspath(output)

    def close(self) -> None:
        """Gives the file and the memory of the report back. Nothing can be asked after that."""
        try:
            del self._core
        except (AttributeError, ValueError):
            # It was closed before.
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
        """The tables that `sql` asks, each with `about` (what a row is) and its `columns`: `name`,
        `type` in SQL, `unit` and `about`. What `table` gives says the same of itself."""
        return _json(self._core.schema_json())

    def find(self, query: str, limit: int = 1000) -> Table:
        """Steps, operations, programs, variables, tensors and vertices by name and by a small
        filter, the dearest of each list first: `in:steps Convolve cycles>1k`.

        Raises `QueryError` where the query cannot be understood.
        """
        hits = _json(self._core.find_json(query, limit))["hits"]
        names = ("list", "id", "name", "type", "ipu", "count", "cycles", "bytes")
        columns = {name: [hit[name] for hit in hits] for name in names}
        return Table.from_columns(columns, f"find {query}")

    @property
    def topics(self) -> dict[str, str]:
        """Names of the topics, each with the question that it answers."""
        return dict(self._core.topics())

    def topic(self, name: str) -> TopicAnswer:
        """Everything that a topic says: `facts`, `figures` (bars, points or lines with axes and
        units) and `tables`, as `tilescope export --view NAME --format json` writes it.

        Raises `QueryError` where there is no such topic.
        """
        return _json(self._core.topic_json(name))

    @property
    def tables(self) -> dict[str, str]:
        """Names of the tables, each with what a row is. Those with a slash are what the views of
        the window show."""
        return dict(self._core.tables())

    def table(
        self,
        name: str,
        *,
        ipus: Sequence[int] | None = None,
        cycles: tuple[int, int] | None = None,
        group_by: str | None = None,
    ) -> Table:
        """A table by name, see `tables`.

        `group_by` adds up the rows of a table that names operations: one row for each `block`,
        `layer` (kind of layer, `layer*/ff2/wu`), `part`, `operator`, `pass`, `stage` or `ipu`.

        `ipus` and `cycles` (first, and first behind the last) select executed steps: those of
        `steps` that share a cycle with the window.

        Raises `QueryError` where there is no such table.
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
        """What the report says to a question in SQL; `docs/format.md` lists its tables.

        Nothing can be changed. Raises `QueryError` with what is wrong with the question, and where
        there is no answer within `timeout` seconds.
        """
        from ._sql import ask

        return ask(self._core, query, parameters, timeout)

    def compare(self, target: Report, per: str | None = None) -> Comparison:
        """This report as the source, another one as the target.

        Cycles are told per sample where both reports know theirs, else per run; `per` asks for
        another unit (`sample`, `update`, `run`, …).
        """
        return Comparison(self, target, per)

    @property
    def figures(self) -> dict[str, str]:
        """Names of the figures, `limits/roofline` for example, each with what it shows."""
        return dict(self._core.figures())

    def plot(self, name: str, *, theme: str = "light") -> Plot:
        """A figure of a topic as SVG, from the same numbers as in the window and on pages; of
        `limits` the first figure. Notebooks show it, and no library is needed.

        Raises `QueryError` where there is no such figure.
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
        """A view, exactly as the window draws it; notebooks show it.

        `format` is `png` or `svg`, `at` a link that was copied in the window.
        """
        from ._picture import draw

        return draw(self, view, format=format, size=size, at=at, theme=theme, compare=compare)

    def __repr__(self) -> str:
        return f"<tilescope.Report {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # What a process opens it opens by itself; temporary reports stay with who made them.
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
    """Two reports, their figures as source, target and difference. A difference is target less
    source, its percentage is of the source."""

    __slots__ = ("_core", "source", "target")

    def __init__(self, source: Report, target: Report, per: str | None = None) -> None:
        self._core = _tilescope.compare(source._core, target._core, per)
        self.source = source
        self.target = target

    def summary(self) -> ComparisonSummary:
        """What it comes to: `verdict` in sentences, `distinction` (whether the difference is beyond
        what the model may be wrong) and `normalization` (what figures of the run are told per)."""
        return _json(self._core.overview_json())

    @property
    def views(self) -> list[str]:
        """What can be compared: the overview, and every view."""
        return self._core.views()

    def tables(self, view: str = "overview") -> dict[str, str]:
        """Names of the tables of a view, each with its title."""
        return {f"{view}/{name}": title for name, title in self._core.tables(view)}

    def table(self, name: str = "overview") -> Table:
        """A table of differences: `memory/variables`, or the first of a view for `memory`."""
        return Table(self._core.table(name), name)

    def check(self, *gates: str) -> list[Violation]:
        """Gates that the target does not pass, in their order: none where all is well.

        A gate says what must not be: `cycles > +2%`, `memory.max_tile_including_gaps > 600 KiB`. It
        is a figure (a dotted path of `summary()`, or `cycles`, `throughput`, `memory`, `max_tile`),
        `>`, `>=`, `<`, `<=` or `==`, and a number with its unit. A number with a sign is a change
        against the source. What a report does not have is a violation, too.

        Raises `QueryError`, which marks the place, where a gate cannot be understood.
        """
        return [Violation(**of) for of in _json(self._core.check_json(list(gates)))]

    def markdown(self, limit: int = 10) -> str:
        """What changed, on one page, for the text of a pull request: the verdict and tables of up
        to `limit` rows."""
        return self._core.markdown(limit)

    def __repr__(self) -> str:
        return f"<tilescope.Comparison {self.source.path} -> {self.target.path}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.summary()['verdict'])}</p>{self.table()._repr_html_()}"


class Violation:
    """A gate that is not passed: `gate` as it was written, its `figure` as a path of `summary()`,
    `source` and `target` (None where a report has no such figure), the work they are told `per`,
    and a `sentence`."""

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
    """The figures of a report in short, as the command line prints them after a simulation."""
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
