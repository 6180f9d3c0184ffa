"""``libpvti``: marks that scripts make for the PopVision System Analyser. Reports have the time of
IPUs and of host calls, not that of this script. The marks are accepted and ignored, with one
message."""

from .. import _log
from . import refusal

__getattr__ = refusal("libpvti")
_told = False


def _tell() -> None:
    global _told
    if not _told:
        _log.say("libpvti: spans, events, series and heat maps of the script are in no report")
    _told = True


def createTraceChannel(name: str) -> str:
    """A channel: its name."""
    _tell()
    return name


class Tracepoint:
    """A span: ``with Tracepoint(channel, "epoch"):``."""

    def __init__(self, channel, label: str) -> None:
        _tell()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        return None

    @staticmethod
    def event(channel, label: str) -> None:
        """A moment."""

    @staticmethod
    def begin(channel, label: str) -> None:
        """The start of a span."""

    @staticmethod
    def end(channel, label: str) -> None:
        """The end of a span."""


class _Series:
    def add(self, value) -> None:
        """One more value."""


class Graph:
    """Series of numbers over time."""

    def __init__(self, name: str, units: str = "") -> None:
        _tell()

    def addSeries(self, name: str) -> _Series:
        """One more series."""
        return _Series()


class HeatmapDouble(_Series):
    """Distributions over time."""

    def __init__(self, name: str, edges, units: str = "") -> None:
        _tell()


HeatmapFloat = HeatmapInt = HeatmapDouble
