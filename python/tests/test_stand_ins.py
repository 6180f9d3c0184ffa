"""Modules of the Poplar SDK that scripts import beside PopTorch."""

import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: stand-ins are not tested")

import numpy
import torch
from torch import nn

from tilescope import poptorch
from tilescope.poptorch import _script

_script.install()

import libpvti
import popart
import popdist
import popdist.poptorch


def said(function, *arguments) -> str:
    """What a call says on stderr."""
    with contextlib.redirect_stderr(io.StringIO()) as text:
        function(*arguments)
    return text.getvalue()


class PopdistTest(unittest.TestCase):
    def test_without_poprun_there_is_one_process(self):
        self.assertFalse(popdist.isPopdistEnvSet())
        self.assertEqual((popdist.getNumInstances(), popdist.getNumTotalReplicas()), (1, 1))
        options = popdist.poptorch.Options(ipus_per_replica=4)
        self.assertIsInstance(options, poptorch.Options)
        self.assertEqual(options.replication_factor, 1)

    def test_replicas_of_poprun_are_keys(self):
        asked = {"POPDIST_NUM_TOTAL_REPLICAS": "8", "POPDIST_NUM_LOCAL_REPLICAS": "2"}
        with unittest.mock.patch.dict(os.environ, asked):
            self.assertTrue(popdist.isPopdistEnvSet())
            options = popdist.poptorch.Options()
        self.assertEqual(options.replication_factor, 2)
        self.assertEqual(options._spec_keys["options.replication_factor"], 8)
        self.assertEqual(options._spec_keys["options.num_instances"], 4)

    def test_functions_run_on_the_first_process(self):
        self.assertEqual(popdist.execute_on_instances({0}, lambda: 7), 7)
        self.assertIsNone(popdist.execute_on_instances({1}, lambda: 7))


class RefusalTest(unittest.TestCase):
    def test_what_is_missing_is_named(self):
        builder, options = popart.Builder(), popart.SessionOptions()
        for place, name, words in [
            (popart, "TrainingSesion", "popart.TrainingSesion is not modelled"),
            (popdist, "tensorflow", "popdist.tensorflow is not modelled"),
            (popdist.poptorch, "init", "popdist.poptorch.init is not modelled"),
            (libpvti, "checkTrace", "libpvti.checkTrace is not modelled"),
            (torch.ops.poptorch, "begin_ipu_block", "torch.ops.poptorch.begin_ipu_block is not"),
            (builder, "embedReplicationFactor", "Builder.embedReplicationFactor is not modelled"),
            (builder.aiOnnx, "matmull", "ONNX has no operator 'matmull'"),
            (builder.aiGraphcore, "lstm", "aiGraphcore.lstm is not modelled"),
            (popart.DeviceManager(), "enumerateDevices", "enumerateDevices is not modelled"),
            (options, "enableOutlinig", "no session option 'enableOutlinig'"),
        ]:
            with self.subTest(name), self.assertRaisesRegex(AttributeError, words):
                getattr(place, name)
        with self.assertRaisesRegex(AttributeError, "did you mean 'enableOutlining'"):
            options.enableOutlinig = True
        with self.assertRaises(ImportError):
            from popart import ir  # noqa: F401

    def test_marks_of_the_script_are_told_once(self):
        def mark():
            channel = libpvti.createTraceChannel("application")
            with libpvti.Tracepoint(channel, "epoch"):
                libpvti.Tracepoint.event(channel, "now")
            libpvti.Graph("loss", "").addSeries("training").add(0.5)
            libpvti.HeatmapDouble("weights", [0.0, 1.0], "2^x").add([0.25])

        with unittest.mock.patch.object(libpvti, "_told", False):
            self.assertEqual(said(mark).count("in no report"), 1)
            self.assertEqual(said(mark), "")


class SessionTest(unittest.TestCase):
    """Graphs of PopART's builder are simulated."""

    def graph(self):
        builder = popart.Builder()
        x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4, 8]), "x")
        weights = [
            builder.addInitializedInputTensor(numpy.ones([8, 8], numpy.float32), name)
            for name in ("first", "second")
        ]
        x = builder.aiOnnx.matmul([x, weights[0]])
        builder.pipelineStage(x, 0)
        with builder.pipelineStage(1), builder.nameScope("end"):
            x = builder.aiOnnx.softmax([builder.aiOnnx.matmul([x, weights[1]])], axis=1)
            loss = builder.aiGraphcore.l1loss([x], 0.5)
        return builder, x, loss

    def options(self):
        options = popart.SessionOptions()
        options.enablePipelining = True
        options.enableReplicatedGraphs = True
        options.replicatedGraphCount = 2
        options.enableGradientAccumulation = True
        options.accumulationFactor = 4
        options.autoRecomputation = popart.RecomputationType.Pipeline
        location = options.optimizerStateTensorLocationSettings.location
        location.storage = popart.TensorStorage.OffChip
        location.replicatedTensorSharding = popart.ReplicatedTensorSharding.On
        options.engineOptions["target.syncReplicasIndependently"] = "true"
        return options

    def session(self, ipus=4):
        builder, result, loss = self.graph()
        manager = popart.DeviceManager()
        return popart.TrainingSession(
            fnModel=builder.getModelProto(),
            dataFlow=popart.DataFlow(3, [result, loss]),
            loss=loss,
            optimizer=popart.SGD({"defaultMomentum": (0.9, True)}),
            deviceInfo=manager.acquireAvailableDevice(ipus, pattern=popart.SyncPattern.SinglePipeline),
            userOptions=self.options(),
        )

    def test_training_is_simulated(self):
        session = self.session()
        session.prepareDevice()
        for line in [
            "ipus = 2", "gradient_accumulation = 4", "device_iterations = 3",
            "replication_factor = 2", 'sync_pattern = "single_pipeline"', 'execution = "pipelined"',
            "location.optimizer_state.on_chip = false", 'host.framework = "popart"',
            "location.optimizer_state.replicated_tensor_sharding = true",
            'recomputation = "pipeline"', 'optimizer = "sgd_momentum"',
            "sync_replicas_independently = true", 'output_mode = "all"',
        ]:
            self.assertIn(line, session.report.spec)
        summary = session.report.summary()
        self.assertEqual(summary["target"]["num_ipus"], 4)
        self.assertEqual(summary["execution"]["samples"], 4 * 3 * 4 * 2)
        anchors = session.initAnchorArrays()
        self.assertEqual(sorted(array.shape for array in anchors.values()),
                         [(3, 4, 2), (3, 4, 2, 4, 8)])
        session.weightsFromHost()
        session.run(popart.PyStepIO({"x": numpy.zeros([3, 4, 2, 4, 8])}, anchors))

    def test_stages_are_ipus(self):
        import onnx

        model = onnx.load_from_string(self.graph()[0].getModelProto())
        places = {
            node.op_type: {a.name: a.i for a in node.attribute if a.name.startswith("__")}
            for node in model.graph.node
        }
        self.assertEqual(places["Softmax"], {"__pipeline_stage": 1, "__ipu_number": 1})
        self.assertTrue(any(node.name.startswith("end/") for node in model.graph.node))

    def test_devices_with_too_few_ipus_are_refused(self):
        with self.assertRaisesRegex(poptorch.Error, "needs 2 IPUs for each of 2 replicas"):
            self.session(ipus=2).prepareDevice()

    def test_unknown_operators_are_told(self):
        builder = popart.Builder()
        x = builder.addInputTensor(popart.TensorInfo("FLOAT", [8]))
        attributes = {"alpha": 0.02}
        (y,) = builder.customOp("LeakyRelu", 1, "custom.ops", [x], attributes)
        builder.addOutputTensor(y)
        flow = popart.DataFlow(1, {y: popart.AnchorReturnType("FINAL")})
        device = popart.DeviceManager().createIpuModelDevice({})
        session = popart.InferenceSession(builder.getModelProto(), flow, device, patterns=[])
        words = "not modelled: patterns, custom.ops.LeakyRelu (cost unknown)"
        self.assertIn(words, said(session.prepareDevice))
        with self.assertRaisesRegex(poptorch.Error, "inputShapeInfo is not modelled"):
            popart.InferenceSession(builder.getModelProto(), flow, device, inputShapeInfo={})
        self.assertIn('type = "ipu_model"', session.report.spec)

    def test_global_replicas_are_instances(self):
        options = popart.SessionOptions()
        options.enableDistributedReplicatedGraphs = True
        options.globalReplicationFactor = 6
        session = self.session()
        session._options = options
        self.assertEqual(session._replicas(), {
            "options.replication_factor": 6, "options.num_instances": 6,
        })


class PrivateTest(unittest.TestCase):
    """Private parts of PopTorch that public scripts use."""

    def test_models_are_unwrapped_and_wrapped_again(self):
        from poptorch._impl import rewrapModelIfNecessary, unwrapModelIfNecessary

        model = nn.Linear(2, 2)
        executor = poptorch.trainingModel(model)
        self.assertIsNone(executor._executable)
        unwrapModelIfNecessary(model)
        self.assertFalse(hasattr(model, "destroy"))
        rewrapModelIfNecessary(model)
        self.assertTrue(hasattr(model, "destroy"))
        executor.destroy()

    def test_operators_of_torch(self):
        torch.ops.poptorch.push_name_scope("scope")
        torch.ops.poptorch.pop_name_scope()
        half = torch.ops.poptorch.internal_cast(torch.ones(2), "FLOAT16")
        self.assertEqual(half.dtype, torch.float16)
        with self.assertRaisesRegex(poptorch.Error, "FLOAT8"):
            torch.ops.poptorch.internal_cast(half, "FLOAT8")

    def test_libraries_of_operators_are_told(self):
        from examples_utils import load_lib

        self.assertIn("x.cpp is not built", said(load_lib, "x.cpp"))

    def test_the_launcher_answers_the_imports(self):
        code = "import popart, popdist.poptorch, libpvti; from poptorch._impl import *"
        with tempfile.TemporaryDirectory() as directory:
            script = pathlib.Path(directory) / "script.py"
            script.write_text(f"{code}\nprint(popart.__name__)\n")
            words = [sys.executable, "-m", "tilescope.poptorch", str(script)]
            printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed.strip(), "tilescope.poptorch.stand_ins.popart")


if __name__ == "__main__":
    unittest.main()
