"""``horovod.torch``, if it is not installed: one process, which exchanges nothing."""

from .. import refusal

__getattr__ = refusal("horovod.torch")
Average = "Average"
Sum = "Sum"


def init(*_, **__) -> None:
    """Does nothing: one process simulates all."""


def rank() -> int:
    """Index of this process."""
    return 0


local_rank = rank


def size() -> int:
    """Number of processes."""
    return 1


local_size = size


def allreduce(tensor, *_, **__):
    """The sum or mean over one process."""
    return tensor


allgather = broadcast = grouped_allreduce = allreduce


def broadcast_parameters(*_, **__) -> None:
    """Does nothing: all processes have the same weights."""


broadcast_object = allreduce
