"""Code of public guides and tutorials for IPUs, run by the launcher as users would paste it.

What stands before and after a block is what the text leaves to the reader: data, which are random
here, and the call that trains.
"""

import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: guides are not tested")

import tilescope as ts
from tilescope.poptorch import _dataloader, _script

from .support import needs


class GuideTest(unittest.TestCase):
    """Runs scripts, and reads the reports that they leave."""

    def run_script(self, *parts: str) -> dict:
        """Runs the parts as one script; returns its reports by the name of their directory."""
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        script = directory / "script.py"
        script.write_text("\n".join(textwrap.dedent(part) for part in parts))
        reports = directory / "reports"
        options = f'{{"autoReport.all": "true", "autoReport.directory": "{reports}"}}'
        environment = {**os.environ, "POPLAR_ENGINE_OPTIONS": options}
        self.enterContext(unittest.mock.patch.dict(os.environ, environment))
        self.enterContext(unittest.mock.patch.object(sys, "argv", []))
        self.enterContext(unittest.mock.patch.object(sys, "path", list(sys.path)))
        self.enterContext(contextlib.chdir(directory))
        # Without processes that load: torch waits for seconds until they have ended.
        self.enterContext(unittest.mock.patch.object(_dataloader, "_cores", lambda: 0))
        _script.run([str(script)])
        found = {path.parent.name: ts.open(path) for path in directory.rglob("profile.pop")}
        self.assertTrue(found, "the script leaves no report")
        return found

    def assert_spec(self, report, *lines: str) -> None:
        """The report was made with these lines of a spec."""
        for line in lines:
            self.assertIn(line, report.spec)


@needs("pytorch_lightning")
class LightningGuide(GuideTest):
    """Lightning's guide to IPUs, of version 1.5."""

    BEFORE = """
        import torch
        import pytorch_lightning as pl
        from pytorch_lightning import Trainer

        class Reader(pl.LightningModule):
            def training_step(self, batch, _):
                x, y = batch
                return torch.nn.functional.cross_entropy(self(x), y)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

            def train_dataloader(self):
                samples = torch.utils.data.TensorDataset(
                    torch.randn(512, 5), torch.randint(0, 5, (512,))
                )
                return torch.utils.data.DataLoader(samples, batch_size=1)

        class MyLightningModule(Reader):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(5, 5)

            def forward(self, x):
                return self.layer(x)

        # One epoch, and nothing printed: the guide leaves the trainer's other arguments out.
        import functools
        quiet = dict(max_epochs=1, enable_progress_bar=False, enable_model_summary=False,
                     logger=False, enable_checkpointing=False)
        pl.Trainer = Trainer = functools.partial(Trainer, **quiet)
    """
    # In place of the dots of a module.
    REST = """
        training_step = Reader.training_step
        configure_optimizers = Reader.configure_optimizers
        train_dataloader = Reader.train_dataloader
    """

    def run_script(self, *parts: str) -> dict:
        import pytorch_lightning as pl

        self.enterContext(unittest.mock.patch.object(pl, "Trainer", pl.Trainer))
        return super().run_script(self.BEFORE, *parts)

    def test_training(self):
        reports = self.run_script(
            "trainer = pl.Trainer(ipus=8)  # Train using data parallel on 8 IPUs",
            "trainer.fit(MyLightningModule())",
        )
        self.assert_spec(reports["training"], "replication_factor = 8")
        self.assertEqual(reports["training"].summary()["target"]["num_ipus"], 8)

    def test_mixed_precision(self):
        reports = self.run_script("""
            import pytorch_lightning as pl

            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, precision=16)
            trainer.fit(model)
        """)
        self.assert_spec(reports["training"], "replication_factor = 8", 'precision = "mixed"')

    def test_half_precision(self):
        reports = self.run_script("""
            import pytorch_lightning as pl
            from pytorch_lightning.plugins import IPUPlugin

            model = MyLightningModule()
            model = model.half()
            trainer = pl.Trainer(ipus=8, precision=16)
            trainer.fit(model)
        """)
        self.assert_spec(reports["training"], "replication_factor = 8", 'precision = "as_is"')
        shapes = {
            row["name"]: row["shape"] for row in reports["training"].table("variables").to_pylist()
        }
        self.assertEqual(shapes["module.layer.weight"], "float16[5,5]")

    def test_device_iterations(self):
        reports = self.run_script("""
            import pytorch_lightning as pl
            from pytorch_lightning.plugins import IPUPlugin

            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, plugins=IPUPlugin(device_iterations=32))
            trainer.fit(model)
        """)
        self.assert_spec(reports["training"], "device_iterations = 32", "replication_factor = 8")

    def test_options_of_poptorch(self):
        reports = self.run_script("""
            import poptorch
            import pytorch_lightning as pl
            from pytorch_lightning.plugins import IPUPlugin

            model = MyLightningModule()
            inference_opts = poptorch.Options()
            inference_opts.deviceIterations(32)

            training_opts = poptorch.Options()
            training_opts.anchorMode(poptorch.AnchorMode.All)
            training_opts.deviceIterations(32)

            trainer = Trainer(ipus=8, plugins=IPUPlugin(inference_opts=inference_opts, training_opts=training_opts))
            trainer.fit(model)
        """)
        self.assert_spec(reports["training"], "device_iterations = 32", 'output_mode = "all"')

    def test_report_directory(self):
        self.run_script("""
            import pytorch_lightning as pl
            from pytorch_lightning.plugins import IPUPlugin

            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, plugins=IPUPlugin(autoreport_dir="report_dir/"))
            trainer.fit(model)
        """)
        self.assertTrue(pathlib.Path("reports/training/profile.pop").exists())

    def test_begin_block(self):
        reports = self.run_script(
            """
            import pytorch_lightning as pl
            import poptorch
            from pytorch_lightning.plugins import IPUPlugin


            class MyLightningModule(pl.LightningModule):
                def __init__(self):
                    super().__init__()
                    # This will place layer1, layer2+layer3, layer4, softmax on different IPUs at runtime.
                    # BeginBlock will start a new id for all layers within this block
                    self.layer1 = poptorch.BeginBlock(torch.nn.Linear(5, 10), ipu_id=0)

                    # This layer starts a new block,
                    # adding subsequent layers to this current block at runtime
                    # till the next block has been declared
                    self.layer2 = poptorch.BeginBlock(torch.nn.Linear(10, 5), ipu_id=1)
                    self.layer3 = torch.nn.Linear(5, 5)

                    # Create new blocks
                    self.layer4 = poptorch.BeginBlock(torch.nn.Linear(5, 5), ipu_id=2)
                    self.softmax = poptorch.BeginBlock(torch.nn.Softmax(dim=1), ipu_id=3)
            """
            + textwrap.indent(textwrap.dedent(self.REST), " " * 16)
            + """
                def forward(self, x):
                    return self.softmax(self.layer4(self.layer3(self.layer2(self.layer1(x)))))


            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, plugins=IPUPlugin(device_iterations=20))
            trainer.fit(model)
            """
        )
        self.assert_spec(reports["training"], "device_iterations = 20", "replication_factor = 8")
        self.assertEqual(reports["training"].summary()["target"]["num_ipus"], 32)

    def test_block(self):
        reports = self.run_script(
            """
            import pytorch_lightning as pl
            import poptorch
            from pytorch_lightning.plugins import IPUPlugin


            class MyLightningModule(pl.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.layer1 = torch.nn.Linear(5, 10)
                    self.layer2 = torch.nn.Linear(10, 5)
                    self.layer3 = torch.nn.Linear(5, 5)
                    self.layer4 = torch.nn.Linear(5, 5)

                    self.act = torch.nn.ReLU()
                    self.softmax = torch.nn.Softmax(dim=1)

                def forward(self, x):

                    with poptorch.Block(ipu_id=0):
                        x = self.act(self.layer1(x))

                    with poptorch.Block(ipu_id=1):
                        x = self.act(self.layer2(x))

                    with poptorch.Block(ipu_id=2):
                        x = self.act(self.layer3(x))
                        x = self.act(self.layer4(x))

                    with poptorch.Block(ipu_id=3):
                        x = self.softmax(x)
                    return x
            """
            + textwrap.indent(textwrap.dedent(self.REST), " " * 16)
            + """
            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, plugins=IPUPlugin(device_iterations=20))
            trainer.fit(model)
            """
        )
        self.assertEqual(reports["training"].summary()["target"]["num_ipus"], 32)



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
        session = popart.InferenceSession(builder.getModelProto(), flow, device, opts)
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


LOADER_IMPORTS = """
    import time

    import torch
    import torch.nn as nn
    import poptorch

    device_iterations, bs, replicas, num_workers = 2, 16, 1, 2
    opts = poptorch.Options().deviceIterations(device_iterations).replicationFactor(replicas)
"""
LOADER_MODEL = """
    class ClassificationModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 5, 3)
            self.pool = nn.MaxPool2d(2, 2)
            self.conv2 = nn.Conv2d(5, 12, 5)
            self.norm = nn.GroupNorm(3, 12)
            self.fc1 = nn.Linear(41772, 100)
            self.relu = nn.ReLU()
            self.fc2 = nn.Linear(100, 10)
            self.log_softmax = nn.LogSoftmax(dim=0)
            self.loss = nn.NLLLoss()

        def forward(self, x, labels=None):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.norm(self.relu(self.conv2(x)))
            x = torch.flatten(x, start_dim=1)
            x = self.relu(self.fc1(x))
            x = self.log_softmax(self.fc2(x))
            if self.training:
                return x, self.loss(x, labels)
            return x

    if __name__ == '__main__':
        model = ClassificationModel()
        model.train()  # Switch the model to training mode
        # Models are initialised in training mode by default, so the line above will
        # have no effect. Its purpose is to show how the mode can be set explicitly.
        training_model = poptorch.trainingModel(model, opts, torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9))

        # Create a fake dataset from random data
        features = torch.randn([10000, 1, 128, 128])
        labels = torch.empty([10000], dtype = torch.long).random_(10)
        dataset = torch.utils.data.TensorDataset(features, labels)
"""
LOADER = """
    training_data = poptorch.DataLoader(opts,
                                        dataset=dataset,
                                        batch_size=16,
                                        shuffle=True,
                                        drop_last=True,
                                        num_workers=32,
                                        mode=poptorch.DataLoaderMode.Async)
"""
LOADER_CALL = "data, labels = next(iter(training_data))\ntraining_model(data, labels)"


class LoaderGuide(GuideTest):
    """PopTorch's tutorial on efficient data loading."""

    # As many samples as one call takes: the text's 10,000 are 655 MB.
    MODEL = LOADER_MODEL.replace("10000", "32")

    def run_parts(self, *parts: str, before: str = ""):
        reports = self.run_script(LOADER_IMPORTS, before, *parts)
        self.assertEqual(list(reports), ["training"])
        self.assert_spec(reports["training"], "device_iterations = 2", 'optimizer = "sgd_momentum"')
        return reports["training"]

    def test_model_and_data(self):
        report = self.run_parts(LOADER_MODEL, LOADER, LOADER_CALL)
        self.assert_spec(report, "dataset_samples = 10000", "batch_size = 16")

    def test_loader(self):
        report = self.run_parts(self.MODEL, LOADER, LOADER_CALL)
        self.assert_spec(report, 'host.loader = "async"', "host.num_workers = 32")

    def test_guard(self):
        guard = "if __name__ == '__main__':\n"
        self.run_parts(self.MODEL, guard + textwrap.indent(LOADER, "    "), LOADER_CALL)

    def test_call(self):
        block = "training_model(data, labels)"
        self.run_parts(self.MODEL, LOADER, "data, labels = next(iter(training_data))", block)

    def test_loop(self):
        block = """
            for data, labels in training_data:
                training_model(data, labels)
        """
        self.run_parts(self.MODEL, LOADER, block)

    def test_throughput_of_the_loader(self):
        block = """
                t0 = time.time()
                for i, (data, labels) in enumerate(training_data):
                    a, b = data, labels
                t1 = time.time()
                total_time = t1-t0
                print("total execution Time:", total_time, "s")
                print("DataLoader throughput:", (steps*device_iterations*bs*replicas)/total_time, "items/s")
        """
        self.run_parts(self.MODEL, LOADER, "steps = len(training_data)", block, LOADER_CALL)

    def test_synthetic_data(self):
        block = "opts.enableSyntheticData(True)"
        report = self.run_parts(self.MODEL, LOADER, LOADER_CALL, before=block)
        self.assert_spec(report, 'host.loader = "synthetic"')

    def test_warm_up(self):
        block = """
            # Warmup
            print("Compiling + Warmup ...")
            training_model.compile(data, labels)
        """
        self.run_parts(self.MODEL, LOADER, "data, labels = next(iter(training_data))", block)

    def test_options_of_the_loader(self):
        block = """
            training_data = poptorch.DataLoader(opts,
                                               dataset=dataset,
                                               batch_size=bs,
                                                shuffle=True,
                                                drop_last=True,
                                                num_workers=num_workers,
                                                mode=poptorch.DataLoaderMode.Async,
                                                async_options={"early_preload":True, "miss_sleep_time_in_ms":0})
        """
        report = self.run_parts(self.MODEL, block, LOADER_CALL)
        self.assert_spec(report, "host.early_preload = true", "host.num_workers = 2")

    def test_steps(self):
        block = """
            # Number of steps necessary to consume the whole dataset
            steps = len(training_data)
        """
        self.run_parts(self.MODEL, LOADER, block, "assert steps == 1", LOADER_CALL)



# PopTorch's tutorial on pipelining, block by block.
PIPELINE = {
    "imports": """
        import os
        import json
        import argparse
        from pkgutil import get_data
        import sys
        from tqdm import tqdm
        import torch
        import torch.nn as nn
        import torchvision
        import poptorch
    """,
    "parameters": """
        learning_rate = 0.001
        epochs = 3
        batch_size = 40
        test_batch_size = 8
        training_iterations = 10
        gradient_accumulation = 10
        inference_iterations = 100
    """,
    "data": """
        train_dataset = torchvision.datasets.MNIST(
            "mnist_data/",
            train=True,
            download=True,
            transform=torchvision.transforms.Compose(
                [
                    torchvision.transforms.ToTensor(),
                    torchvision.transforms.Normalize((0.1307,), (0.3081,)),
                ]
            ),
        )

        test_dataset = torchvision.datasets.MNIST(
            "mnist_data/",
            train=False,
            download=True,
            transform=torchvision.transforms.Compose(
                [
                    torchvision.transforms.ToTensor(),
                    torchvision.transforms.Normalize((0.1307,), (0.3081,)),
                ]
            ),
        )
    """,
    "loaders": """
        train_opts = poptorch.Options()
        train_opts.deviceIterations(training_iterations)
        train_opts.Training.gradientAccumulation(gradient_accumulation)

        training_data = poptorch.DataLoader(
            train_opts,
            train_dataset,
            batch_size=batch_size,
            shuffle=True,
            mode=poptorch.DataLoaderMode.Async,
            num_workers=16,
        )

        test_data = poptorch.DataLoader(
            poptorch.Options().deviceIterations(inference_iterations),
            test_dataset,
            batch_size=test_batch_size,
            shuffle=True,
            drop_last=True,
            mode=poptorch.DataLoaderMode.Async,
            num_workers=16,
        )
    """,
    "layer": """
        class ConvLayer(nn.Module):
            def __init__(self, in_channels, num_filters, kernel_size, pool_size):
                super().__init__()
                self.conv = nn.Conv2d(in_channels, num_filters, kernel_size=kernel_size)
                self.pool = nn.MaxPool2d(kernel_size=pool_size)
                self.relu = nn.ReLU()

            def forward(self, x):
                x = self.conv(x)
                x = self.pool(x)
                x = self.relu(x)
                return x
    """,
    "network": """
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer1 = ConvLayer(1, 10, 5, 2)
                self.layer2 = ConvLayer(10, 20, 5, 2)
                self.layer3 = nn.Linear(320, 256)
                self.layer3_act = nn.ReLU()
                self.layer4 = nn.Linear(256, 10)

            def forward(self, x):
                with poptorch.Block("B1"):
                    x = self.layer1(x)
                with poptorch.Block("B2"):
                    x = self.layer2(x)
                with poptorch.Block("B3"):
                    x = x.view(-1, 320)
                    x = self.layer3_act(self.layer3(x))
                with poptorch.Block("B4"):
                    x = self.layer4(x)
                return x


        model = Network()
    """,
    "loss": """
        class TrainingModelWithLoss(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model
                self.loss = torch.nn.CrossEntropyLoss()

            def forward(self, args, labels=None):
                output = self.model(args)
                if labels is None:
                    return output
                with poptorch.Block("B4"):
                    loss = self.loss(output, labels)
                return output, loss
    """,
    "training model": """
        def get_training_model(opts, model):
            \"\"\"Wrap a model with the loss and the optimiser into a poptorch.trainingModel\"\"\"
            model_with_loss = TrainingModelWithLoss(model)
            training_model = poptorch.trainingModel(
                model_with_loss,
                opts,
                optimizer=poptorch.optim.AdamW(model.parameters(), lr=learning_rate),
            )
            return training_model
    """,
    "options": """
        train_opts = poptorch.Options()
    """,
    "stages": """
        pipelined_strategy = poptorch.PipelinedExecution(
            poptorch.Stage("B1").ipu(0),
            poptorch.Stage("B2").ipu(1),
            poptorch.Stage("B3").ipu(2),
            poptorch.Stage("B4").ipu(3),
        )
    """,
    "strategy": """
        train_opts.setExecutionStrategy(pipelined_strategy)
    """,
    "short strategy": """
        train_opts.setExecutionStrategy(poptorch.PipelinedExecution("B1", "B2", "B3", "B4"))
    """,
    "iterations": """
        train_opts.deviceIterations(training_iterations)
        train_opts.Training.gradientAccumulation(gradient_accumulation)
    """,
    "two stages": """
        pipelined_strategy = poptorch.PipelinedExecution(
            poptorch.Stage("B1", "B2").ipu(0), poptorch.Stage("B3", "B4").ipu(1)
        )
    """,
    "sharded": """
        sharded_strategy = poptorch.ShardedExecution(
            poptorch.Stage("B1").ipu(0),
            poptorch.Stage("B2").ipu(1),
            poptorch.Stage("B3").ipu(2),
            poptorch.Stage("B4").ipu(3),
        )
    """,
    "offload": """
        train_opts.TensorLocations.setOptimizerLocation(
            poptorch.TensorLocationSettings().useOnChipStorage(False)
        )
    """,
    "train": """
        def train(training_model, training_data):
            nr_steps = len(training_data)
            for epoch in range(1, epochs + 1):
                print(f"Epoch {epoch}/{epochs}")
                bar = tqdm(training_data, total=nr_steps)
                for data, labels in bar:
                    preds, losses = training_model(data, labels)
                    mean_loss = torch.mean(losses).item()
                    acc = accuracy(preds, labels)
                    bar.set_description(f"Loss:{mean_loss:0.4f} | Accuracy:{acc:0.2f}%")
    """,
    "accuracy": """
        def accuracy(predictions, labels):
            _, ind = torch.max(predictions, 1)
            labels = labels[-predictions.size()[0] :]
            accuracy = torch.sum(torch.eq(ind, labels)).item() / labels.size()[0] * 100.0
            return accuracy
    """,
    "output mode": """
        # Warning: impacts performance
        train_opts.outputMode(poptorch.OutputMode.All)
    """,
    "training": """
        training_model = get_training_model(train_opts, model)
        train(training_model, training_data)
    """,
    "test": """
        def test(inference_model, test_data):
            nr_steps = len(test_data)
            sum_acc = 0.0
            for data, labels in tqdm(test_data, total=nr_steps):
                output = inference_model(data)
                sum_acc += accuracy(output, labels)
            print(f"Accuracy on test set: {sum_acc / len(test_data):0.2f}%")
    """,
    "inference model": """
        inf_options = train_opts.clone()
        inf_options.Training.gradientAccumulation(1)
        inf_options.deviceIterations(inference_iterations)
        inference_model = poptorch.inferenceModel(model, inf_options)
    """,
    "inference": """
        test(inference_model, test_data)
    """,
}
# In place of the pictures: as many random ones as fill a call.
RANDOM_MNIST = """
    import sys
    import types

    import torch

    class MNIST(torch.utils.data.TensorDataset):
        def __init__(self, root, train, download, transform):
            count = 4000 if train else 800
            super().__init__(torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,)))

    torchvision = types.ModuleType("torchvision")
    torchvision.datasets = types.SimpleNamespace(MNIST=MNIST)
    torchvision.transforms = types.SimpleNamespace(
        Compose=list, ToTensor=object, Normalize=lambda *_: None
    )
    sys.modules["torchvision"] = torchvision
"""


@needs("tqdm")
class PipelineGuide(GuideTest):
    """PopTorch's tutorial on parallel execution using pipelining."""

    # What the text defines before it comes to options.
    DEFINED = ("imports", "parameters", "data", "loaders", "layer", "network", "loss",
               "training model", "options", "iterations")
    ONE_CALL = """
        training_model = get_training_model(train_opts, model)
        for data, labels in training_data:
            training_model(data, labels)
    """

    def run_blocks(self, names, *parts: str) -> dict:
        with unittest.mock.patch.dict(sys.modules):
            return self.run_script(RANDOM_MNIST, *(PIPELINE[name] for name in names), *parts)

    def train(self, *names: str, choice: str = ""):
        """Defines what the text does, then runs blocks and one call."""
        return self.run_blocks((*self.DEFINED, *names), choice, self.ONE_CALL)["training"]

    def test_whole_text(self):
        """All blocks in the order of the text."""
        reports = self.run_blocks(PIPELINE)
        self.assertEqual(set(reports), {"training", "inference"})
        self.assert_spec(
            reports["training"], 'execution = "pipelined"', "gradient_accumulation = 10",
            "device_iterations = 10", 'output_mode = "all"', 'optimizer = "adamw"',
            "location.optimizer_state.on_chip = false", "dataset_samples = 4000",
        )
        self.assertEqual(reports["training"].summary()["execution"]["samples"], 4000)
        self.assert_spec(reports["inference"], "device_iterations = 100", "batch_size = 8")
        for report in reports.values():
            self.assertEqual(report.summary()["target"]["num_ipus"], 4)

    def test_stages(self):
        report = self.train("stages", "strategy")
        self.assert_spec(report, 'execution = "pipelined"', "batch_size = 40")
        self.assertEqual(report.summary()["target"]["num_ipus"], 4)

    def test_short_strategy(self):
        self.assertEqual(self.train("short strategy").summary()["target"]["num_ipus"], 4)

    def test_two_stages(self):
        report = self.train("two stages", "strategy")
        self.assertEqual(report.summary()["target"]["num_ipus"], 2)

    def test_sharded(self):
        choice = "train_opts.setExecutionStrategy(sharded_strategy)"
        self.assert_spec(self.train("sharded", choice=choice), 'execution = "sharded"')

    def test_offload(self):
        self.assert_spec(
            self.train("short strategy", "offload"), "location.optimizer_state.on_chip = false"
        )

    def test_output_mode(self):
        report = self.train("short strategy", "output mode")
        self.assert_spec(report, 'output_mode = "all"')


if __name__ == "__main__":
    unittest.main()
