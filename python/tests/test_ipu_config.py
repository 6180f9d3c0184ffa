"""Configurations of the Hugging Face hub as options."""

import importlib.util
import json
import pathlib
import tempfile
import unittest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: IPUConfig is not tested")

import torch
from torch import nn

from tilescope import _toml, poptorch
from tilescope._program import run
from tilescope.poptorch import _simulation
from tilescope.poptorch.ipu_config import IPUConfig

# Facts of the `ipu_config.json` of public models of Graphcore on the hub, by the name of the model.
CONFIGS = json.loads((pathlib.Path(__file__).parent / "data" / "ipu_configs.json").read_text())
# A network with a block for each of eight IPUs.
NETWORK = {
    "model.name": "bert",
    "model.layers": 6,
    "model.hidden": 32,
    "model.heads": 2,
    "model.intermediate": 32,
    "model.vocab_size": 32,
    "model.sequence_length": 16,
    "model.batch_size": 1,
    "target.name": "bow_pod16",
    "options.auto_stage": "same_as_ipu",
}


class Layers(nn.Module):
    """A layer on each IPU."""

    def __init__(self, ipus):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(ipus))

    def forward(self, x):
        for ipu, layer in enumerate(self.layers):
            with poptorch.Block(ipu_id=ipu):
                x = layer(x)
        return x


class IPUConfigTest(unittest.TestCase):
    def test_public_configurations_are_keys(self):
        self.assertEqual(len(CONFIGS), 10)
        for name, values in CONFIGS.items():
            for for_inference in (False, True):
                with self.subTest(name, for_inference=for_inference):
                    config = IPUConfig.from_dict(values)
                    keys = config.keys(for_inference)
                    self.assertEqual(keys["target.ipus"], len(values["layers_per_ipu"]))
                    self.assertEqual(
                        keys["options.location.optimizer_state.on_chip"],
                        not values["optimizer_state_offchip"],
                    )
                    if not for_inference:
                        self.assertEqual(
                            keys["options.gradient_accumulation"],
                            values["gradient_accumulation_steps"],
                        )
                    self.assertEqual(list(config.to_options(for_inference)._missing), [])

    def test_public_configurations_are_valid_specs(self):
        for name, values in CONFIGS.items():
            keys = IPUConfig.from_dict(values).keys()
            with self.subTest(name):
                with tempfile.TemporaryDirectory() as directory:
                    path = pathlib.Path(directory) / "spec.toml"
                    path.write_text(_toml.document(_simulation.nested({**NETWORK, **keys})))
                    printed, _ = run(["simulate", str(path), "--check", "--json"])
                self.assertEqual(len(json.loads(printed)["stages"]), len(values["layers_per_ipu"]))

    def test_values_of_systems_are_chosen(self):
        values = CONFIGS["wav2vec2-ctc-base-ipu"]
        for pod, replicas in [("default", 1), ("pod4", 1), ("pod16", 4)]:
            options = IPUConfig.from_dict(values, pod=pod).to_options()
            self.assertEqual(options.replication_factor, replicas)
        with self.assertRaisesRegex(poptorch.Error, "replication_factor is for pod4"):
            IPUConfig.from_dict(values, pod="pod3")

    def test_files_are_read(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "ipu_config.json"
            path.write_text(json.dumps(CONFIGS["vit-base-ipu"]))
            for place in (directory, path):
                options = IPUConfig.from_pretrained(place).to_options()
                self.assertEqual(options.Training.gradient_accumulation, 128)
            with self.assertRaisesRegex(poptorch.Error, "is not a file"):
                IPUConfig.from_pretrained("Graphcore/vit-base-ipu")

    def test_what_optimum_does_not_know_is_refused(self):
        with self.assertRaisesRegex(poptorch.Error, "has no layers_per_ipus"):
            IPUConfig(layers_per_ipus=[1, 2])
        with self.assertRaisesRegex(poptorch.Error, "3 values for 4 IPUs"):
            IPUConfig(layers_per_ipu=[1] * 4, matmul_proportion=[0.1] * 3).to_options()

    def test_options_of_training_and_inference_run(self):
        config = IPUConfig(layers_per_ipu=[1, 1], gradient_accumulation_steps=4,
                           inference_device_iterations=3, matmul_proportion=[0.2, 0.3])
        model = poptorch.inferenceModel(Layers(2), config.to_options(for_inference=True))
        self.assertEqual(tuple(model(torch.zeros(6, 4)).shape), (6, 4))
        for line in ['execution = "sharded"', "device_iterations = 3",
                     "available_memory_proportion = [0.2, 0.3]"]:
            self.assertIn(line, model.report.spec)


if __name__ == "__main__":
    unittest.main()
