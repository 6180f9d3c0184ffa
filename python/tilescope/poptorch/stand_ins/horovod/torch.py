"""``horovod.torch``, where it is not installed: one process, so there is nothing to exchange."""

from .. import refusal

__getattr__ = refusal("horovod.torch")
Average = "Average"
Sum = "Sum"


def init(*_, **__) -> None:
    """There is nothing to connect to."""


def rank() -> int:
    """Which process this is."""
    return 0


local_rank = rank


def size() -> int:
    """How many processes there are."""
    return 1


local_size = size


def allreduce(tensor, *_, **__):
    """The sum or mean over one process."""
    return tensor


allgather = broadcast = grouped_allreduce = allreduce


def broadcast_parameters(*_, **__) -> None:
    """All processes have the same weights."""


broadcast_object = allreduce
