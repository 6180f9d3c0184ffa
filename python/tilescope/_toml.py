"""Writes specs and values as TOML, which Python's standard library only reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def value(of: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, int):
        return str(of)
    if isinstance(of, float):
        if math.isnan(of) or math.isinf(of):
            return str(of)
        return repr(of)
    if isinstance(of, str):
        # TOML has the escapes of JSON; neither allows surrogates.
        return json.dumps(of, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(of, (list, tuple)):
        return f"[{', '.join(map(value, of))}]"
    if isinstance(of, Mapping):
        return f"{{{', '.join(f'{_key(k)} = {value(v)}' for k, v in of.items())}}}"
    if hasattr(of, "item"):
        # Numbers of numpy, torch and similar packages.
        return value(of.item())
    raise TypeError(f"a spec has numbers, strings, booleans and lists, not {type(of).__name__}")


def document(spec: Mapping[str, Any]) -> str:
    """A spec: `{"model": {"name": "mnist"}, "options": {…}}`."""
    lines: list[str] = []
    for section, entries in spec.items():
        if not isinstance(entries, Mapping):
            raise TypeError(f"a spec has tables such as model and options; {section} is not a table")
        lines.append(f"[{_key(section)}]")
        lines += [f"{_key(key)} = {value(of)}" for key, of in entries.items()]
    return "\n".join(lines) + "\n"


def _key(name: Any) -> str:
    text = str(name)
    # A dotted key stays dotted, as in specs: `location.optimizer_state`.
    parts = text.split(".")
    bare = all(part and part.replace("_", "").replace("-", "").isalnum() for part in parts)
    return text if bare and text.isascii() else value(text)
