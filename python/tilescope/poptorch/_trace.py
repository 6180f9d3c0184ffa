"""Record of an exported forward pass: blocks, and marks of operations.

Operations are marked through :func:`torch.fx.traceback.annotate`'s dictionary, which export keeps
with every node. That needs torch 2.9.
"""

import contextlib

import torch
from torch.fx import traceback

from ._errors import Error

MARK = "tilescope"
current = None


class Trace:
    """A forward pass while it is exported."""

    def __init__(self, strategy) -> None:
        self.strategy = strategy
        self.overlap = None
        self.missing = {}

    def restart(self, *_) -> None:
        """Resets the record at the start of a forward pass."""
        self.strategy.restart()
        _replace({})


@contextlib.contextmanager
def exporting(strategy):
    """Runs its body as the export of a model with this strategy."""
    global current
    if not hasattr(traceback, "annotate"):
        raise Error(f"torch {torch.__version__} cannot keep blocks in exports: use torch >= 2.9")
    if current is not None:
        raise Error("a model is exported inside the export of another")
    current = Trace(strategy)
    try:
        with traceback.preserve_node_meta():
            yield current
    finally:
        current = None


def begin_block(user_id, ipu_id) -> dict:
    """Begins a block. Returns the marks that were active before."""
    name = user_id if user_id is not None else current.strategy.auto_block()
    before = _marks()
    _replace({**before, **current.strategy.place(name, ipu_id)})
    return before


def end_block(before: dict) -> None:
    """Restores the marks that were active before."""
    _replace(before)


@contextlib.contextmanager
def marked(**marks):
    """Marks the operations of its body."""
    before = _marks()
    _replace({**before, **marks})
    try:
        yield
    finally:
        _replace(before)


def identity(tensor: torch.Tensor, **marks) -> torch.Tensor:
    """Returns ``tensor``; in an exported model, an operation that only carries marks."""
    if current is None:
        return tensor
    with marked(**marks):
        return tensor.clone()


def marks_of(node) -> dict:
    """The marks of a node of an exported graph."""
    return (node.meta.get("custom") or {}).get(MARK, {}) if node is not None else {}


def _marks() -> dict:
    return (traceback.current_meta.get("custom") or {}).get(MARK, {})


def _replace(marks: dict) -> None:
    # New dictionaries, because existing nodes keep theirs.
    custom = dict(traceback.current_meta.get("custom") or {})
    custom[MARK] = marks
    traceback.current_meta["custom"] = custom
