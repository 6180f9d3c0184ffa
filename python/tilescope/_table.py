"""Tables, for any library that reads Arrow."""

from __future__ import annotations

from ._tilescope import Table as _Core
from ._tilescope import table_of_columns

# As in `typing`, which takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy
    import pandas
    import polars
    import pyarrow

    from .types import ColumnSchema

# Rows that a notebook shows.
_SHOWN = 20


class Table:
    """Columns and rows.

    Libraries read a table through the Arrow PyCapsule interface, without copies:
    `pyarrow.table(t)`, `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)`, and
    `duckdb.sql("select … from t")`. Executed steps are read from the file on demand, batch by
    batch.
    """

    __slots__ = ("_core", "name")

    def __init__(self, core: _Core, name: str = "") -> None:
        self._core = core
        self.name = name

    @classmethod
    def from_columns(cls, columns: dict[str, list[Any]], name: str = "") -> Table:
        """A table of Python values. All columns must have the same length."""
        return cls(table_of_columns(list(columns.items())), name)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._core.columns

    def __len__(self) -> int:
        return len(self._core)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __getitem__(self, place: str | slice) -> Any:
        """The values of a column, or a table of some rows: `table["cycles"]`, `table[:10]`."""
        if isinstance(place, str):
            return self._core.values(place)
        if not isinstance(place, slice):
            kind = type(place).__name__
            raise TypeError(f"a table is indexed by a column's name or by a slice, not by {kind}")
        first, end, step = place.indices(len(self))
        rows = self.to_pydict(max(first + 1 if step < 0 else end, 0))
        return Table.from_columns({of: values[place] for of, values in rows.items()}, self.name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, as dicts."""
        columns = self.to_pydict()
        return (dict(zip(columns, row)) for row in zip(*columns.values()))

    def head(self, rows: int = 5) -> Table:
        """The first rows."""
        return self[: max(rows, 0)]

    def to_pydict(self, limit: int | None = None) -> dict[str, list[Any]]:
        """The first `limit` rows (all by default) as a dict of columns."""
        return {name: self._core.values(name, limit) for name in self.columns}

    def to_pylist(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The first `limit` rows (all by default), as dicts."""
        columns = self.to_pydict(limit)
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    @property
    def schema(self) -> list[ColumnSchema]:
        """`name`, `type` (of the values in Python), `unit` (of the numbers) and `about` of each
        column; None if there is none."""
        keys = ("name", "type", "unit", "about")
        return [dict(zip(keys, row)) for row in self._core.schema_rows]  # type: ignore[misc]

    def to_arrow(self) -> pyarrow.Table:
        """Converts the table to a pyarrow table; requires pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Converts the table to a pandas data frame; requires pandas and pyarrow."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Converts the table to a polars data frame; requires polars."""
        import polars

        return polars.DataFrame(self)

    def to_numpy(self) -> dict[str, numpy.ndarray]:
        """Converts the table to a dict of numpy arrays; requires numpy. A column of numbers with
        missing values becomes floats with NaN; texts become objects."""
        import numpy

        def array(values: list[Any]) -> numpy.ndarray:
            numbers = all(value is None or isinstance(value, (int, float)) for value in values)
            if not numbers or all(value is None for value in values):
                return numpy.array(values, dtype=object)
            if None in values:
                return numpy.array([numpy.nan if v is None else v for v in values])
            return numpy.array(values)

        return {name: array(self._core.values(name)) for name in self.columns}

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<tilescope.Table{name}: {len(self):,} rows, {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from html import escape

        columns = self.to_pydict(_SHOWN)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>"
            for row in zip(*columns.values())
        )
        hidden = len(self) - _SHOWN
        more = f"<p>… and {hidden:,} more rows</p>" if hidden > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _shown(value: Any) -> str:
    if value is None:
        return "—"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
