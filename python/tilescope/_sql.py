"""SQL queries of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._table import Table
from ._tilescope import QueryError, Report


def ask(
    report: Report, query: str, parameters: Sequence[Any] | dict[str, Any], timeout: float
) -> Table:
    """The rows of a result, with one type per column."""
    pairs = parameters.items() if isinstance(parameters, dict) else ((None, v) for v in parameters)
    values = [(name, _parameter(value)) for name, value in pairs]
    return Table.from_columns(dict(report.sql(query, values, timeout)), "sql")


def _parameter(value: Any) -> int | float | str | bytes | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise QueryError(f"a parameter of more than 64 bits: {value}")
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    raise QueryError(f"a parameter is a number, a text or bytes, not {type(value).__name__}")
