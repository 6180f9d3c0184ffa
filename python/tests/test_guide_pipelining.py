"""Code of PopTorch's tutorial on pipelining."""

import sys
import unittest

from .guides import GuideTest
from .support import needs


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
    import importlib.machinery
    import sys
    import types

    import torch

    class MNIST(torch.utils.data.TensorDataset):
        def __init__(self, root, train, download, transform):
            count = 4000 if train else 800
            super().__init__(torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,)))

    torchvision = types.ModuleType("torchvision")
    # torch looks for it when it exports.
    torchvision.__spec__ = importlib.machinery.ModuleSpec("torchvision", None)
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
        # Only this module is restored: torch cannot be imported a second time.
        real = sys.modules.get("torchvision")
        try:
            return self.run_script(RANDOM_MNIST, *(PIPELINE[name] for name in names), *parts)
        finally:
            sys.modules.pop("torchvision", None)
            if real is not None:
                sys.modules["torchvision"] = real

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
