"""``popdist``: this process simulates all processes that ``poprun`` starts.

Without ``poprun``'s environment variables it has one process and one replica.
"""

import os

from .. import refusal
from . import poptorch  # noqa: F401

__getattr__ = refusal("popdist")


def _number(name: str) -> int:
    return int(os.environ.get(f"POPDIST_{name}", "1"))


def isPopdistEnvSet() -> bool:
    """True if ``poprun`` started this process."""
    return "POPDIST_NUM_TOTAL_REPLICAS" in os.environ


def init() -> None:
    """Does nothing: one process simulates all."""


def getInstanceIndex() -> int:
    """Index of this process: the first, which simulates all."""
    return 0


def getNumInstances() -> int:
    """Number of processes."""
    return max(_number("NUM_TOTAL_REPLICAS") // _number("NUM_LOCAL_REPLICAS"), 1)


def getNumTotalReplicas() -> int:
    """Replicas of all processes."""
    return _number("NUM_TOTAL_REPLICAS")


def getNumLocalReplicas() -> int:
    """Replicas of this process."""
    return _number("NUM_LOCAL_REPLICAS")


def getNumIpusPerReplica() -> int:
    """IPUs of a replica."""
    return _number("NUM_IPUS_PER_REPLICA")


def execute_on_instances(instances, function, *args, **kwargs):
    """Runs a function if the first process is among the requested ones."""
    return function(*args, **kwargs) if 0 in set(instances) else None
