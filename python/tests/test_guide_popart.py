"""Code of PopART's guide to performance."""

import unittest

from .guides import GuideTest


class PopartGuide(GuideTest):
    """PopART's guide to performance: stages, replicas and sync patterns."""

    GRAPH = """
        import numpy as np
        import popart

        builder = popart.Builder()
        x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4, 3, 8, 8]))
        w = builder.addInitializedInputTensor(np.zeros([3, 3, 3, 3], np.float32))
        with builder.pipelineStage(0):
            x = builder.aiOnnx.conv([x, w])
        w = builder.addInitializedInputTensor(np.zeros([3, 3, 3, 3], np.float32))
    """
    CONVOLUTION = """
        o = builder.aiOnnx.conv([x, w])
        builder.pipelineStage(o, 1)
    """
    DEVICE = "device = popart.DeviceManager().acquireAvailableDevice(8)"
    RUN = """
        opts = globals().get("opts") or popart.SessionOptions()
        opts.enablePipelining = True
        flow = popart.DataFlow(3, {o: popart.AnchorReturnType("ALL")})
        session = popart.InferenceSession(builder.getModelProto(), flow, device, userOptions=opts)
        session.prepareDevice()
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({}, anchors))
        assert anchors[o].shape[-4:] == (4, 3, 4, 4)
    """

    def assert_two_stages(self, reports):
        self.assertEqual(reports["inference"].summary()["target"]["ipus_per_replica"], 2)
        self.assert_spec(reports["inference"], 'execution = "pipelined"', "device_iterations = 3")

    def test_stage_of_an_operation(self):
        self.assert_two_stages(
            self.run_script(self.GRAPH, self.CONVOLUTION, self.DEVICE, self.RUN)
        )

    def test_stage_as_a_scope(self):
        block = """
            with builder.pipelineStage(1):
                o = builder.aiOnnx.conv([x, w])
        """
        self.assert_two_stages(self.run_script(self.GRAPH, block, self.DEVICE, self.RUN))

    def test_local_replicas(self):
        block = """
            opts = popart.SessionOptions()
            opts.enableReplicatedGraphs = True
            opts.replicatedGraphCount = 2
        """
        reports = self.run_script(self.GRAPH, self.CONVOLUTION, block, self.DEVICE, self.RUN)
        self.assert_spec(reports["inference"], "replication_factor = 2")
        self.assertNotIn("num_instances", reports["inference"].spec)

    def test_global_replicas(self):
        block = """
            opts = popart.SessionOptions()
            # Local replication settings.
            opts.enableReplicatedGraphs = True
            opts.replicatedGraphCount = 2
            # Global replication settings.
            opts.enableDistributedReplicatedGraphs = True
            opts.globalReplicationFactor = 8
            opts.globalReplicaOffset = 2 # <-- Different offset for each PopART instance
        """
        reports = self.run_script(self.GRAPH, self.CONVOLUTION, block, self.DEVICE, self.RUN)
        self.assert_spec(reports["inference"], "replication_factor = 8", "num_instances = 4")

    def test_sync_patterns(self):
        block = """
            sync_pattern = popart.SyncPattern.Full
            if args.execution_mode == "PHASED":
                sync_pattern = popart.SyncPattern.ReplicaAndLadder
            device = popart.DeviceManager().acquireAvailableDevice(
                request_ipus,
                pattern=sync_pattern)
        """
        for mode, pattern in [("PHASED", "replica_and_ladder"), ("PIPELINE", "full")]:
            before = f"""
                import types
                args, request_ipus = types.SimpleNamespace(execution_mode="{mode}"), 2
            """
            reports = self.run_script(self.GRAPH, self.CONVOLUTION, before, block, self.RUN)
            self.assert_spec(reports["inference"], f'sync_pattern = "{pattern}"')


if __name__ == "__main__":
    unittest.main()
