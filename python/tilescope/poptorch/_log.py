"""Messages on stderr, filtered by PopTorch's log levels."""

import os
import sys

_LEVELS = {"TRACE": 0, "DEBUG": 1, "INFO": 2, "WARN": 3, "ERR": 4, "OFF": 6}
_level = _LEVELS.get(os.environ.get("POPTORCH_LOG_LEVEL", "WARN").upper(), 3)


def set_level(level) -> None:
    """Sets the level by PopTorch's name or number."""
    global _level
    if isinstance(level, str):
        if level.upper() not in _LEVELS:
            raise ValueError(f"unknown log level {level!r}; known: {', '.join(_LEVELS)}")
        level = _LEVELS[level.upper()]
    _level = int(level)


def debug(text: str) -> None:
    """Logs a message for debugging."""
    _print("DEBUG", text)


def warning(text: str) -> None:
    """Logs a warning."""
    _print("WARN", text)


def say(text: str) -> None:
    """Prints a message for every user, unless the log is off."""
    if _level < _LEVELS["OFF"]:
        print(f"[tilescope] {text}", file=sys.stderr, flush=True)


def _print(name: str, text: str) -> None:
    if _LEVELS[name] >= _level:
        print(f"[tilescope] [{name.lower()}] {text}", file=sys.stderr, flush=True)
