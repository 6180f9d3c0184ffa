"""``popdist.poptorch``: options of PopTorch under ``poprun``."""

from __future__ import annotations

from ... import _options
from .. import refusal

__getattr__ = refusal("popdist.poptorch")


class Options(_options.Options):
    """PopTorch's options, with the replicas and processes of ``poprun``."""

    def __init__(self, ipus_per_replica: int | None = None) -> None:
        import popdist

        super().__init__()
        self._ipus_per_replica = ipus_per_replica or popdist.getNumIpusPerReplica()
        self.replicationFactor(popdist.getNumLocalReplicas())
        self.Distributed.configureProcessId(0, popdist.getNumInstances())
        # A spec counts the replicas of all processes.
        self._spec_path("options.replication_factor", popdist.getNumTotalReplicas())
