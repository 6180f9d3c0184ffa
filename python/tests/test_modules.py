"""Modules of torch as models."""

import importlib.util
import unittest
from pathlib import Path

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: modules are not tested")

import torch
from torch import nn

import tilescope as ts
from tilescope import poptorch

from .support import scratch


class Layers(nn.Module):
    """Three layers and a head."""

    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(64, 48)
        self.layer2 = nn.Linear(48, 48)
        self.layer3 = nn.Linear(48, 48)
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = 2 * x
        for layer in (self.layer1, self.layer2, self.layer3):
            x = layer(x).relu()
        return self.head(x)


class Modules(unittest.TestCase):
    def setUp(self):
        self.model = Layers()
        self.x, self.y = torch.randn(16, 64), torch.randint(0, 10, (16,))

    def simulated(self, **wishes):
        inputs = (self.x, self.y) if callable(wishes.get("loss")) else self.x
        return ts.simulate(self.model, inputs, progress=False, **wishes)

    def test_inference_is_what_happens_without_a_loss(self):
        kinds = set(self.simulated().table("operations")["kind"])
        self.assertEqual(kinds, {"bias_add", "matmul", "relu", "scale"})

    def test_a_loss_of_a_spec_and_a_loss_of_torch_are_the_same(self):
        named = self.simulated(loss="cross_entropy", optimizer="adamw").summary()
        weights = self.model.parameters()
        function = self.simulated(loss=nn.CrossEntropyLoss(), optimizer=torch.optim.AdamW(weights))
        self.assertEqual(named["execution"], function.summary()["execution"])

    def test_keywords_are_inputs(self):
        by_name = ts.simulate(self.model, {"x": self.x}, progress=False).summary()
        self.assertEqual(by_name["execution"], self.simulated().summary()["execution"])

    def test_stages_are_places(self):
        wishes = {"loss": nn.CrossEntropyLoss(), "options": {"gradient_accumulation": 8}}
        report = self.simulated(stages={"layer1": 0, "layer2": 1, "layer3": 1, "head": 0}, **wishes)
        self.assertEqual(report.summary()["target"]["num_ipus"], 2)
        self.assertEqual(report.summary()["execution"]["samples"], 128)
        stages = [["layer1"], ["layer2", "layer3"], ["head"]]
        report = self.simulated(stages=stages, **wishes)
        self.assertEqual(set(report.table("steps")["ipu"]) >= {0, 1, 2}, True)
        report = self.simulated(stages="balanced", ipus=2, **wishes)
        self.assertEqual(report.summary()["target"]["num_ipus"], 2)

    def test_blocks_of_the_model_are_stages(self):
        class Blocks(Layers):
            def forward(self, x):
                with poptorch.Block("front"):
                    x = self.layer1(x).relu()
                with poptorch.Block("back"):
                    return self.head(self.layer2(x))

        report = ts.simulate(Blocks(), self.x, stages=[["front"], ["back"]],
                             options={"device_iterations": 4}, progress=False)
        self.assertEqual(report.summary()["target"]["num_ipus"], 2)
        self.assertEqual(len(self.model.layer1._forward_pre_hooks), 0)

    def test_the_model_is_kept_with_the_report(self):
        report = self.simulated(output=scratch() / "module")
        self.assertTrue((scratch() / "module" / "model.onnx").exists())
        again = ts.simulate(report)
        self.assertEqual(again.summary(), report.summary())
        report = self.simulated()
        directory = Path(report.path).parent
        self.assertTrue(directory.exists())
        del report
        self.assertFalse(directory.exists())

    def test_splits_are_splits(self):
        class Split(nn.Module):
            def __init__(self):
                super().__init__()
                self.all = nn.Linear(64, 48)

            def forward(self, x):
                query, key, value = self.all(x).split(16, dim=-1)
                low, high = torch.chunk(query, 2, dim=0)
                narrow, wide = torch.split(key, [6, 10], dim=-1)
                return low * high, narrow, wide.exp() + value[:, 6:]

        report = ts.simulate(Split(), self.x, progress=False)
        kinds = report.table("operations")["kind"]
        self.assertEqual(kinds.count("split"), 3)

    def test_the_model_stays_as_it_was(self):
        before = {name: weight.clone() for name, weight in self.model.named_parameters()}
        self.simulated(loss=nn.CrossEntropyLoss(), stages=[["layer1"], ["head"]],
                       options={"gradient_accumulation": 4})
        self.assertTrue(all(torch.equal(before[n], w) for n, w in self.model.named_parameters()))
        self.assertFalse(any(of._forward_pre_hooks for of in self.model.modules()))
        self.assertTrue(self.model.training)

    def test_what_cannot_be_meant_says_what_can(self):
        for wishes, kind, words in [
            ({"stages": {"layr1": 0}}, ValueError, "did you mean 'layer1'"),
            ({"stages": [["layer1", "nothing_like_it"]]}, ValueError, "no block"),
            ({"training": True}, ts.SimulationError, "is a loss"),
            ({"loss": "crossentropy"}, ts.SpecError, "cross_entropy"),
            ({"loss": 3}, TypeError, "a name or a function"),
            ({"optimizer": 3}, TypeError, "adamw"),
        ]:
            with self.assertRaisesRegex(kind, words, msg=wishes):
                self.simulated(**wishes)
        for inputs in (None, 3, "x"):
            with self.assertRaisesRegex(TypeError, "inputs of one micro-batch"):
                ts.simulate(self.model, inputs)
        with self.assertRaisesRegex(TypeError, "labels last"):
            ts.simulate(self.model, self.x, loss=nn.MSELoss())

        class Undecided(nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        with self.assertRaisesRegex(ts.SimulationError, "static graph"):
            ts.simulate(Undecided(), self.x)


if __name__ == "__main__":
    unittest.main()
