"""PopTorch's interface: options, blocks, calls."""

import importlib.util
import os
import pathlib
import re
import tempfile
import types
import unittest
import unittest.mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: poptorch is not tested")

import torch
from torch import nn

from tilescope import poptorch
from tilescope.poptorch import _export, _simulation

from .networks import Network, two_stages
from .support import REPOSITORY


def exported(model, *args, strategy=None, training=False):
    """A model's export, in a directory that lives as long as the test."""
    directory = pathlib.Path(tempfile.mkdtemp())
    strategy = strategy or poptorch.PipelinedExecution("A", "B")
    return _export.export(model, args, {}, strategy, training, directory)


def attributes(path):
    """Each node of a file: operator and PopART's attributes."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    return [
        (node.op_type, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute
                        if a.name.startswith("__")})
        for node in model.graph.node
    ]


class OptionsTest(unittest.TestCase):
    """What scripts set becomes keys of a spec."""

    SETTERS = [
        (lambda o: o.deviceIterations(7), "options.device_iterations", 7),
        (lambda o: o.replicationFactor(4), "options.replication_factor", 4),
        (lambda o: o.Training.gradientAccumulation(3), "options.gradient_accumulation", 3),
        (lambda o: o.outputMode(poptorch.OutputMode.Sum), "options.output_mode", "sum"),
        (lambda o: o.outputMode(poptorch.OutputMode.EveryN, 5), "options.output_return_period", 5),
        (lambda o: o.syncPattern(poptorch.SyncPattern.SinglePipeline), "options.sync_pattern",
         "single_pipeline"),
        (lambda o: o.syncPattern(poptorch.SyncPattern.ReplicaAndLadder), "options.sync_pattern",
         "replica_and_ladder"),
        (lambda o: o.Precision.setPartialsType(torch.half), "options.partials_type", "float16"),
        (lambda o: o.Precision.enableStochasticRounding(True), "options.stochastic_rounding", True),
        (lambda o: o.Training.setConvolutionDithering(True), "options.conv_dithering", True),
        (lambda o: o.TensorLocations.numIOTiles(32), "options.num_io_tiles", 32),
        (lambda o: o.enableSyntheticData(True), "options.host.loader", "synthetic"),
        (lambda o: o._Popart.set("defaultPrefetchBufferingDepth", 3), "options.prefetch_depth", 3),
        (lambda o: o._Popart.set("defaultBufferingDepth", 256), "options.prefetch_depth", 256),
        (lambda o: o._Popart.set("convolutionOptions", {"use128BitConvUnitLoad": "true"}),
         "options.use_128bit_conv_unit_load", True),
        (lambda o: o._Popart.set("autoRecomputation", 3), "options.recomputation", "pipeline"),
        (lambda o: o._Popart.set("accumulateOuterFragmentSettings.schedule", 2),
         "options.accumulate_outer_schedule", "overlap_cycle_optimized"),
        (lambda o: o._Popart.set("enableOutlining", False), "options.enable_outlining", False),
        (lambda o: o.TensorLocations.setOptimizerLocation(
            poptorch.TensorLocationSettings().useOnChipStorage(False)),
         "options.location.optimizer_state.on_chip", False),
        (lambda o: o.TensorLocations.setWeightLocation(
            poptorch.TensorLocationSettings().useReplicatedTensorSharding(True)),
         "options.location.weights.replicated_tensor_sharding", True),
        (lambda o: o.TensorLocations.setActivationLocation(
            poptorch.TensorLocationSettings(minElementsForOffChip=9)),
         "options.location.activations.min_elements_for_off_chip", 9),
        (lambda o: o.TensorLocations.setAccumulatorLocation(
            poptorch.TensorLocationSettings().useIOTilesToLoad(True)),
         "options.location.accumulators.use_io_tiles", True),
    ]

    def test_setters_are_keys(self):
        for number, (setter, path, value) in enumerate(self.SETTERS):
            with self.subTest(number=number, path=path):
                options = poptorch.Options()
                setter(options)
                self.assertEqual(options._spec_keys.get(path), value)
                self.assertEqual(list(options._missing), [])

    def test_memory_proportions_are_those_of_the_ipus(self):
        for given, ipus, expected in [
            ({}, 2, {}),
            ({"IPU0": 0.2, "IPU1": 0.2}, 2, 0.2),
            ({"IPU0": 0.2, "IPU1": 0.3}, 2, [0.2, 0.3]),
            ({"IPU1": 0.3}, 3, [0.6, 0.3, 0.6]),
            ({"IPU0": 0.1, "IPU1": 0.3}, 1, 0.1),
        ]:
            options = poptorch.Options().setAvailableMemoryProportion(given)
            keys = _simulation._memory_share(options, ipus)
            self.assertEqual(keys.get("options.available_memory_proportion", {}), expected)

    def test_the_framework_is_poptorch(self):
        exported = types.SimpleNamespace(
            path=pathlib.Path("model.onnx"), blocks={}, overlap=None, missing={}
        )
        spec = _simulation.spec_of(exported, poptorch.Options(), None, None, 4, training=False)
        self.assertEqual(spec["options"]["host"], {"framework": "poptorch"})

    def test_tensors_of_one_replica_are_whole(self):
        sharded = poptorch.TensorLocationSettings().useReplicatedTensorSharding(True)
        for replicas in (1, 2):
            options = two_stages().replicationFactor(replicas)
            options.TensorLocations.setOptimizerLocation(sharded)
            model = poptorch.trainingModel(Network(), options)
            model(torch.zeros(4 * replicas, 6), torch.zeros(4 * replicas, dtype=torch.long))
            line = "location.optimizer_state.replicated_tensor_sharding = true"
            self.assertEqual(line in model.report.spec, replicas > 1)

    def test_what_is_not_modelled_is_told(self):
        options = poptorch.Options()
        options._Popart.set("subgraphCopyingStrategy", 1)
        options.Training.setAutomaticLossScaling(True)
        self.assertEqual(
            list(options._missing), ["subgraphCopyingStrategy", "Training.setAutomaticLossScaling"]
        )

    def test_unknown_session_options_are_refused_at_once(self):
        options = poptorch.Options()
        with self.assertRaisesRegex(poptorch.Error, "no session option 'nonsense'$"):
            options._Popart.set("nonsense", 1)
        with self.assertRaisesRegex(poptorch.Error, "did you mean 'enableOutlining'"):
            options._Popart.set("enableOutlinig", False)
        self.assertEqual(options._Popart.options, {})

    def test_engine_options_are_keys(self):
        options = poptorch.Options()
        options._Popart.setEngineOptions({
            "target.syncReplicasIndependently": "true",
            "streamCallbacks.multiThreadMode": "collaborative",
            "streamCallbacks.numWorkerThreads": "4",
            "autoReport.all": "true",
            "opt.internalExchangeOptimisationTarget": "cycles",
        })
        self.assertEqual(_simulation._engine_keys(options), {
            "options.sync_replicas_independently": True,
            "options.host.stream_callbacks_multi_thread_mode": "collaborative",
            "options.host.num_worker_threads": 4,
        })
        missing = "engine option opt.internalExchangeOptimisationTarget"
        self.assertEqual(list(options._missing), [missing])

    def test_unknown_engine_options_are_refused_at_once(self):
        options = poptorch.Options()
        for name, words in [
            ("streamCallbacks.multiThredMode", "did you mean 'streamCallbacks.multiThreadMode'"),
            ("target.syncReplicasIndependantly", "did you mean 'target.syncReplicasIndependently'"),
            ("nonsense", "'nonsense': they begin with autoReport., debug."),
        ]:
            with self.subTest(name):
                with self.assertRaisesRegex(poptorch.Error, words):
                    options._Popart.setEngineOptions({name: "true"})
                with self.assertRaisesRegex(poptorch.Error, words):
                    options._Popart.set("engineOptions", {name: "true"})
                for variable in ["POPLAR_ENGINE_OPTIONS", "POPLAR_RUNTIME_OPTIONS"]:
                    asked = {variable: f'{{"{name}": "true"}}'}
                    with unittest.mock.patch.dict(os.environ, asked):
                        with self.assertRaisesRegex(poptorch.Error, words):
                            poptorch.Options()
        self.assertEqual(options._Popart.options, {})

    def test_runtime_options_are_read_after_engine_options(self):
        threads = '{"streamCallbacks.numWorkerThreads": "%d"}'
        asked = {
            "POPLAR_ENGINE_OPTIONS": threads % 2,
            "POPLAR_RUNTIME_OPTIONS": threads % 3,
        }
        with unittest.mock.patch.dict(os.environ, asked):
            options = _simulation._engine_options(poptorch.Options())
        self.assertEqual(options, {"streamCallbacks.numWorkerThreads": "3"})

    def test_policies_of_casts_are_told(self):
        options = poptorch.Options()
        policy = poptorch.autocasting.Policy(fp16=["matmul"], fp32=["softmax"])
        options.Precision.autocastPolicy(policy)
        self.assertEqual(list(options._missing), ["Precision.autocastPolicy"])
        with self.assertRaisesRegex(poptorch.Error, "autocasting.Policy, not dict"):
            options.Precision.autocastPolicy({"fp16": ["matmul"]})

    def test_options_of_a_model_are_frozen_and_clones_are_not(self):
        options = poptorch.Options()
        poptorch.inferenceModel(Network(), options)
        with self.assertRaisesRegex(AttributeError, "frozen"):
            options.deviceIterations(2)
        self.assertEqual(options.clone().deviceIterations(2).device_iterations, 2)

    def test_files_of_options_are_read_and_wrong_lines_named(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "options.txt"
            path.write_text("deviceIterations(7)  # of a call\n\nanchorMode(AnchorMode.Sum)\n")
            options = poptorch.Options().loadFromFile(str(path))
            self.assertEqual(options.device_iterations, 7)
            self.assertEqual(options._spec_keys["options.output_mode"], "sum")
            path.write_text("deviceIterations(7)\nnoSuchOption(3)\n")
            with self.assertRaisesRegex(poptorch.ConfigFileError, "options.txt:2"):
                poptorch.Options().loadFromFile(str(path))

    def test_executables_are_errors(self):
        with self.assertRaisesRegex(poptorch.Error, "code for IPUs"):
            poptorch.load("model.poptorch")

    def test_names_of_the_document_exist(self):
        text = (REPOSITORY / "docs" / "poptorch.md").read_text()
        text = text[text.index("## What is modelled") : text.index("`ctc_beam_search_decoder`")]
        options = poptorch.Options()
        for row in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE):
            for name in re.findall(r"`([A-Za-z_.]+)`", row):
                if name.startswith("POPLAR_") or name == "replicaGrouping":
                    continue
                first, *rest = name.split(".")
                found = options if first == "Options" else getattr(poptorch, first, None)
                found = getattr(options, first, None) if found is None else found
                found = getattr(poptorch.PoplarExecutor, first, None) if found is None else found
                for part in rest:
                    found = getattr(found, part, None)
                self.assertIsNotNone(found, name)

    def test_unknown_options_are_attribute_errors(self):
        with self.assertRaises(AttributeError):
            poptorch.Options().no_such_option

    def test_reports_go_where_poplar_writes_them(self):
        before = os.environ.pop("POPLAR_ENGINE_OPTIONS", None)
        try:
            options = poptorch.Options().enableProfiling("here")
            self.assertIsNone(_simulation.report_directory(poptorch.Options(), True))
            self.assertEqual(
                _simulation.report_directory(options, True), pathlib.Path("here/training")
            )
            os.environ["POPLAR_ENGINE_OPTIONS"] = (
                '{"autoReport.all": "true", "autoReport.directory": "there"}'
            )
            self.assertEqual(
                _simulation.report_directory(options.modelName("bert"), False),
                pathlib.Path("there/bert"),
            )
            os.environ["POPLAR_ENGINE_OPTIONS"] = "{"
            with self.assertRaisesRegex(poptorch.Error, "not valid JSON"):
                _simulation.report_directory(options, False)
        finally:
            os.environ.pop("POPLAR_ENGINE_OPTIONS", None)
            if before is not None:
                os.environ["POPLAR_ENGINE_OPTIONS"] = before


class BlocksTest(unittest.TestCase):
    """Blocks become PopART's attributes, whichever way they are written."""

    def stages(self, model, strategy, *args):
        return exported(model, *args, strategy=strategy).blocks

    def test_scopes(self):
        blocks = self.stages(Network(), poptorch.PipelinedExecution("A", "B"), torch.zeros(2, 6))
        self.assertEqual(blocks, {"A": (0, 0), "B": (1, 1)})

    def test_stages_choose_ipus(self):
        strategy = poptorch.ShardedExecution(
            poptorch.Stage("A").ipu(1), poptorch.Stage("B").ipu(0)
        )
        self.assertEqual(
            self.stages(Network(), strategy, torch.zeros(2, 6)), {"A": (0, 1), "B": (1, 0)}
        )

    def test_begin_block_lasts_until_the_next(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU())
        poptorch.BeginBlock(model[0], ipu_id=0)
        poptorch.BeginBlock(model[2], ipu_id=1)
        result = exported(model, torch.zeros(2, 4), strategy=poptorch.PipelinedExecution())
        self.assertEqual(result.blocks, {"0": (0, 0), "1": (1, 1)})
        ipus = [marks.get("__ipu_number") for op, marks in attributes(result.path)]
        self.assertEqual(ipus, [0, 0, 1, 1])

    def test_auto_increment_returns_to_an_ipu(self):
        class There(nn.Module):
            def forward(self, x):
                poptorch.Block.useAutoId()
                for ipu in (0, 1, 0):
                    with poptorch.Block(ipu_id=ipu):
                        x = x.exp()
                return x

        strategy = poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement)
        blocks = self.stages(There(), strategy, torch.zeros(2, 4))
        self.assertEqual(blocks, {"0": (0, 0), "1": (1, 1), "2": (2, 0)})

    def test_neighbours_on_one_ipu_are_one_stage(self):
        class Four(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

            def forward(self, x):
                for number, layer in enumerate(self.layers):
                    with poptorch.Block(f"block{number}", ipu_id=number // 2):
                        x = layer(x)
                return x

        def cycles(auto_stage):
            # As many micro-batches as fill two stages.
            options = poptorch.Options().deviceIterations(2)
            options.setExecutionStrategy(poptorch.PipelinedExecution(auto_stage))
            model = poptorch.inferenceModel(Four(), options)
            model(torch.zeros(8, 8))
            return model.report.summary()["execution"]["total_cycles"]

        self.assertEqual(
            cycles(poptorch.AutoStage.AutoIncrement), cycles(poptorch.AutoStage.SameAsIpu)
        )

    def test_block_function_and_phases(self):
        class Phased(nn.Module):
            @poptorch.BlockFunction("A")
            def first(self, x):
                return x.exp()

            def forward(self, x):
                x = self.first(x)
                with poptorch.Block("B"):
                    return x.sin()

        strategy = poptorch.ParallelPhasedExecution(
            poptorch.Phase(poptorch.Stage("A").ipu(0)), poptorch.Phase(poptorch.Stage("B").ipu(1))
        )
        result = exported(Phased(), torch.zeros(2, 4), strategy=strategy)
        phases = [marks["__execution_phase"] for _, marks in attributes(result.path)]
        self.assertEqual(phases, [0, 1])

    def test_stages_of_a_phase_are_on_their_ipus(self):
        class Sides(nn.Module):
            def forward(self, x):
                for phase in range(3):
                    with poptorch.Block(f"{phase}left"):
                        left = x.exp()
                    with poptorch.Block(f"{phase}right"):
                        right = x.sin()
                    with poptorch.Block(f"{phase}both"):
                        x = left + right
                return x

        phases = [
            poptorch.Phase(
                poptorch.Stage(f"{phase}left", f"{phase}both"), poptorch.Stage(f"{phase}right")
            )
            for phase in range(3)
        ]
        strategy = poptorch.ParallelPhasedExecution(*phases)
        for phase in range(3):
            strategy.phase(phase).ipus(phase % 2, phase % 2 + 2)
        options = poptorch.Options().setExecutionStrategy(strategy)
        model = poptorch.inferenceModel(Sides(), options)
        self.assertEqual(model(torch.zeros(2, 4)).shape, (2, 4))
        placed = {
            (row["block"], row["ipu"])
            for row in model.report.table("operations").to_pylist()
            if row["kind"] == "sin"
        }
        self.assertEqual(placed, {("phase0_ipu2", 2), ("phase1_ipu3", 3), ("phase2_ipu2", 2)})

    def test_single_numbers_are_weights(self):
        class Shifted(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias = nn.Parameter(torch.zeros(()))

            def forward(self, x):
                y = 3 * x + self.bias
                return y, poptorch.identity_loss(y * y, reduction="mean")

        model = poptorch.trainingModel(Shifted())
        _, loss = model(torch.ones(2, 4))
        self.assertEqual(loss.shape, (1,) if loss.dim() else ())
        kinds = {row["kind"] for row in model.report.table("operations").to_pylist()}
        self.assertIn("sgd", kinds)

    def test_unknown_blocks_are_named(self):
        with self.assertRaisesRegex(poptorch.Error, "'B' is in no stage; the stages have A"):
            self.stages(Network(), poptorch.PipelinedExecution("A"), torch.zeros(2, 6))

    def test_removed_blocks_leave_nothing(self):
        model = nn.Sequential(nn.Linear(4, 4))
        poptorch.BeginBlock(model[0], "A")
        poptorch.removeBlocks(model)
        self.assertEqual(exported(model, torch.zeros(2, 4)).blocks, {})


class MarksTest(unittest.TestCase):
    """Operations of PopTorch are attributes of nodes."""

    class Marked(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3)

        def forward(self, x):
            x = poptorch.set_available_memory(self.conv(x), 0.25)
            x = poptorch.recomputationCheckpoint(x.relu()).flatten(1)
            mode = poptorch.MatMulSerializationMode.OutputChannels
            return poptorch.serializedMatMul(x, x.t(), mode, 2)

    def test_attributes(self):
        nodes = attributes(exported(self.Marked(), torch.zeros(4, 2, 5, 5)).path)
        self.assertIn(("Conv", {"__available_memory": 0.25}), nodes)
        self.assertIn(("Identity", {"__recompute_output_in_backward_pass": 1}), nodes)
        serialized = {"__serialize_matmul_mode": b"output_channels", "__serialize_matmul_factor": 2}
        self.assertIn(("MatMul", serialized), nodes)

    def test_serialized_products_take_less_memory_at_a_time(self):
        class Product(nn.Module):
            def __init__(self, factor):
                super().__init__()
                self.factor = factor
                self.weight = nn.Parameter(torch.zeros(64, 4096))

            def forward(self, x):
                mode = poptorch.MatMulSerializationMode.OutputChannels
                return poptorch.serializedMatMul(x, self.weight, mode, self.factor)

        steps = []
        for factor in (1, 4):
            model = poptorch.inferenceModel(Product(factor))
            model(torch.zeros(16, 64))
            (count,) = model.report.sql("select count(*) as n from steps").to_pylist()
            steps.append(count["n"])
        self.assertGreater(steps[1], steps[0])

    def test_custom_ops_are_simulated_as_unknown(self):
        class Custom(nn.Module):
            def forward(self, x):
                (y,) = poptorch.custom_op([x], "Cube", "com.acme", 1, example_outputs=[x])
                return y + 1

        model = poptorch.inferenceModel(Custom())
        self.assertTrue(torch.equal(model(torch.ones(2, 4)), torch.full((2, 4), 2.0)))
        self.assertIn("allow_unknown = true", model.report.spec)

    def test_custom_ops_are_nodes_of_their_domain(self):
        class Custom(nn.Module):
            def forward(self, x):
                (y,) = poptorch.custom_op([x], "Cube", "com.acme", 1, example_outputs=[x])
                return y + 1

        result = exported(Custom(), torch.ones(2, 4))
        self.assertIn("Cube", [op for op, _ in attributes(result.path)])
        self.assertIn("custom_op com.acme.Cube (cost unknown)", result.missing)

    def test_weights_are_not_in_the_file(self):
        model = nn.Linear(1000, 1000)
        self.assertLess(exported(model, torch.zeros(1, 1000)).path.stat().st_size, 20_000)


class LossTest(unittest.TestCase):
    """Which output is made small."""

    def test_losses_of_torch_are_found(self):
        args = torch.zeros(2, 6), torch.zeros(2, dtype=torch.long)
        result = exported(Network(), *args, training=True)
        self.assertEqual((result.loss_index, result.loss_output), (1, None))

    def test_marked_losses_are_named(self):
        class Marked(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                x = self.layer(x)
                return poptorch.identity_loss(x * x, "mean"), x.sum()

        result = exported(Marked(), torch.zeros(2, 4), training=True)
        self.assertEqual(result.loss_index, 0)
        self.assertIsNotNone(result.loss_output)

    def test_no_loss_is_an_error(self):
        with self.assertRaisesRegex(poptorch.Error, "identity_loss"):
            exported(Network(), torch.zeros(2, 6), training=True)

    def test_what_torch_cannot_export_is_an_error(self):
        class Looks(nn.Module):
            def forward(self, x):
                return x + 1 if float(x.sum()) > 0 else x

        words = "torch cannot export Looks: .*data-dependent.*\n.*static graph"
        with self.assertRaisesRegex(poptorch.Error, words):
            exported(Looks(), torch.zeros(2, 4))

    def test_other_errors_are_those_of_torch(self):
        class Misfit(nn.Module):
            def forward(self, x):
                return x.view(7, 3)

        with self.assertRaisesRegex(poptorch.Error, r"Misfit: shape '\[7, 3\]' is invalid.*test_poptorch.py:\d+\)$"):
            exported(Misfit(), torch.zeros(2, 4))


if __name__ == "__main__":
    unittest.main()
