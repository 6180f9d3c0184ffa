"""The key of a spec for a name of PopTorch or PopART.

The table is tilescope's own list of keys, whose column *known elsewhere as* names them; it is
read from the bundled command once, so the two cannot disagree.
"""

import functools
import json
import re

from .._program import run


@functools.cache
def _keys() -> list:
    printed, _ = run(["specs", "--keys", "--json"])
    return json.loads(printed)


@functools.cache
def key_of(name: str):
    """The declaration of the key that is known elsewhere as ``name``; None if none is."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    return next((key for key in _keys() if pattern.search(key["also"])), None)


def declaration(path: str):
    """The declaration of the key at ``path``, such as ``options.sync_pattern``; None if unknown."""
    return next((key for key in _keys() if key["path"] == path), None)


def value_for(key: dict, value):
    """``value`` as written in a spec under ``key``; None if the key has no such value.

    Enumerations become words in snake case, types of torch their names, numbers of PopART flags.
    """
    if key["kind"] == "flag":
        return bool(value)
    if isinstance(value, (int, float)) and not hasattr(value, "name"):
        number = float(value) if key["kind"] == "real" else int(value)
        low, high = key["min"], key["max"]
        inside = (low is None or number >= low) and (high is None or number <= high)
        return number if inside else None
    word = _word(value)
    return word if word in key["words"] else None


def _word(value) -> str:
    text = getattr(value, "name", None) or str(value)
    text = text.removeprefix("torch.")
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return {"float": "float32", "half": "float16"}.get(text, text)
