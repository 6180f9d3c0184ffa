"""Reports of programs on Graphcore IPUs, and a simulator that makes them."""

from ._tilescope import Report, ReportError, open

__all__ = ["Report", "ReportError", "open"]
