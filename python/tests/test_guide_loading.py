"""Code of PopTorch's tutorial on data loading."""

import textwrap
import unittest

from .guides import GuideTest


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


if __name__ == "__main__":
    unittest.main()
