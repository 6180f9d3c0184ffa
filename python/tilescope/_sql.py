"""Questions to the file in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ._table import Table
from ._tilescope import QueryError

# What a question may do; everything else (writing, attaching other files, loading extensions) is
# refused.
_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def ask(path: str, query: str, parameters: Sequence[Any] | dict[str, Any]) -> Table:
    """The rows of a question, whose columns get one type each."""
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise QueryError(f"{error}: {path}") from None
    try:
        connection.set_authorizer(_permission)
        cursor = connection.execute(query, parameters)
        if cursor.description is None:
            raise QueryError("the question asks for nothing: it must be a SELECT")
        rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise QueryError(str(error)) from None
    finally:
        connection.close()
    names = _unique([column[0] for column in cursor.description])
    columns = list(zip(*rows)) if rows else [()] * len(names)
    return Table.from_columns(dict(zip(names, map(list, columns))), "sql")


def _permission(action: int, *rest: Any) -> int:
    allowed = action in _ALLOWED and rest[1] != "load_extension"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _unique(names: list[str]) -> list[str]:
    """Names of columns, numbered where several are alike."""
    found: list[str] = []
    for name in names:
        free, number = name, 2
        while free in found:
            free, number = f"{name}_{number}", number + 1
        found.append(free)
    return found
