"""Lightning's IPU options."""

import contextlib
import importlib
import importlib.util
import io
import unittest

MISSING = [
    name
    for name in ("torch", "onnxscript", "lightning")
    if importlib.util.find_spec(name) is None
]
if MISSING:
    raise unittest.SkipTest(f"not installed: {', '.join(MISSING)}: Lightning is not tested")

import lightning.pytorch as pl
import torch
from torch import nn

from tilescope import poptorch
from tilescope.poptorch.lightning import IPUAccelerator, IPUPlugin, IPUStrategy

from .support import scratch


class Guide(pl.LightningModule):
    """The module of Lightning's guide to IPUs, in two blocks."""

    def __init__(self):
        super().__init__()
        self.layer1 = poptorch.BeginBlock(nn.Linear(5, 10), ipu_id=0)
        self.layer2 = poptorch.BeginBlock(nn.Linear(10, 5), ipu_id=1)

    def forward(self, x):
        return self.layer2(self.layer1(x).relu())

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def predict_step(self, batch, _):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-2)


def loader(shuffle=False):
    x = torch.randn(960, 5)
    samples = torch.utils.data.TensorDataset(x, x.argmax(1))
    return torch.utils.data.DataLoader(samples, batch_size=4, shuffle=shuffle)


QUIET = dict(enable_progress_bar=False, enable_model_summary=False, logger=False,
             enable_checkpointing=False)


def trainer(strategy, **arguments):
    return pl.Trainer(accelerator="ipu", strategy=strategy, **QUIET, **arguments)


class Lightning(unittest.TestCase):
    def test_options_of_the_guide_are_keys(self):
        strategy = IPUStrategy(device_iterations=5, autoreport_dir=str(scratch() / "lightning"))
        fit = trainer(
            strategy, devices=2, max_epochs=4, accumulate_grad_batches=4, precision="16-mixed"
        )
        module = Guide()
        before = {name: weight.clone() for name, weight in module.named_parameters()}
        fit.fit(module, loader(shuffle=True), loader())
        self.assertEqual(set(strategy.reports), {"training_step", "validation_step"})
        report = strategy.reports["training_step"]
        for line in ["device_iterations = 5", "gradient_accumulation = 4", 'optimizer = "adamw"',
                     "replication_factor = 2", 'precision = "mixed"', "dataset_samples = 960"]:
            self.assertIn(line, report.spec)
        summary = report.summary()
        self.assertEqual((summary["target"]["num_ipus"], summary["execution"]["samples"]), (4, 160))
        self.assertTrue((scratch() / "lightning" / "training" / "profile.pop").exists())
        # Six calls of 160 samples in each epoch, each with five updates.
        self.assertEqual(fit.global_step, 24)
        self.assertEqual(fit.accumulate_grad_batches, 4)
        for name, weight in module.named_parameters():
            self.assertFalse(torch.equal(weight, before[name]), name)

    def test_results_have_the_shapes_of_calls(self):
        predicted = trainer(IPUPlugin(device_iterations=5), devices=2).predict(Guide(), loader())
        self.assertEqual(len(predicted), 24)
        self.assertEqual(tuple(predicted[0].shape), (40, 5))

    def test_options_of_poptorch_come_first(self):
        options = poptorch.Options().deviceIterations(3)
        options.outputMode(poptorch.OutputMode.Sum)
        strategy = IPUStrategy(inference_opts=options)
        trainer(strategy, devices=1).validate(Guide(), loader(), verbose=False)
        self.assertIn('output_mode = "sum"', strategy.reports["validation_step"].spec)

    def test_options_that_differ_from_the_trainer_are_told(self):
        options = poptorch.Options().replicationFactor(2)
        options.Training.gradientAccumulation(3)
        strategy = IPUStrategy(training_opts=options)
        arguments = dict(devices=4, accumulate_grad_batches=3, max_steps=1)
        with contextlib.redirect_stderr(io.StringIO()) as text:
            trainer(strategy, **arguments).fit(Guide(), loader())
        self.assertIn("replication_factor = 2", strategy.reports["training_step"].spec)
        self.assertIn("replicas: 2 from the options, not from the trainer: 4", text.getvalue())
        self.assertNotIn("accumulated", text.getvalue())

    def test_accelerators_of_ipus_have_their_strategy(self):
        for arguments in [
            dict(accelerator="ipu", devices=8),
            dict(accelerator=IPUAccelerator(), devices=8),
            dict(ipus=8),
            dict(ipus=8, accelerator="ipu", devices=8, plugins=[IPUPlugin()]),
            dict(strategy="ipu_strategy", devices=8),
            dict(plugins=IPUPlugin(), devices=8),
        ]:
            with self.subTest(**arguments):
                made = pl.Trainer(**QUIET, **arguments)
                self.assertIsInstance(made.accelerator, IPUAccelerator)
                self.assertIsInstance(made.strategy, IPUStrategy)
                self.assertEqual(len(made.strategy.parallel_devices), 8)
        self.assertIsInstance(pl.Trainer(**QUIET, accelerator="cpu").accelerator, pl.accelerators.CPUAccelerator)

    def test_other_strategies_are_refused(self):
        for arguments, words in [
            (dict(accelerator="ipu", devices=8, strategy="ddp"), "IPUAccelerator with DDPStrategy"),
            (dict(accelerator="cpu", strategy=IPUStrategy()), "CPUAccelerator with IPUStrategy"),
            (dict(ipus=8, accelerator="cpu"), "needs accelerator 'ipu', not 'cpu'"),
            (dict(ipus=8, devices=4), "same argument"),
            (dict(ipus=8, strategy="ddp", plugins=IPUPlugin()), "one strategy"),
        ]:
            with self.subTest(**arguments), self.assertRaisesRegex(poptorch.Error, words):
                pl.Trainer(**QUIET, **arguments)

    def test_both_packages_have_the_classes(self):
        for name in ("pytorch_lightning", "lightning.pytorch"):
            if importlib.util.find_spec(name.split(".")[0]) is None:
                continue
            package = importlib.import_module(name)
            accelerators, strategies, plugins = (
                importlib.import_module(f"{name}.{part}")
                for part in ("accelerators", "strategies", "plugins")
            )
            self.assertIs(plugins.IPUPlugin, strategies.IPUStrategy)
            made = package.Trainer(**QUIET, ipus=2)
            self.assertIsInstance(made.accelerator, accelerators.IPUAccelerator)
            self.assertIsInstance(made.strategy, strategies.IPUStrategy)

    def test_what_ipus_cannot_do_is_an_error(self):
        with self.assertRaisesRegex(poptorch.Error, "compute with"):
            trainer(IPUStrategy(), precision="64-true")
        with self.assertRaisesRegex(poptorch.Error, "number of replicas"):
            trainer(IPUStrategy(), devices="many")
        with self.assertRaisesRegex(poptorch.Error, "do not clip gradients"):
            clipped = dict(accumulate_grad_batches=4, max_steps=1, gradient_clip_val=1.0)
            trainer(IPUStrategy(), devices=1, **clipped).fit(Guide(), loader())


if __name__ == "__main__":
    unittest.main()
