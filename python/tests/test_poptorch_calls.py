"""PopTorch's interface: calls, results and loaders."""

import collections
import contextlib
import dataclasses
import importlib.util
import io
import os
import unittest
import unittest.mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: poptorch is not tested")

import torch
from torch import nn

from tilescope import poptorch

from .networks import Network, two_stages
from .support import needs


@dataclasses.dataclass
class Result:
    """Results by name, as those of transformers."""

    loss: torch.Tensor
    logits: torch.Tensor
    states: torch.Tensor | None = None


class ResultTest(unittest.TestCase):
    """Tables and dataclasses are results too."""

    def results(self, kind):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(6, 3)

            def forward(self, x, labels):
                logits = self.layer(x)
                return kind(loss=nn.functional.cross_entropy(logits, labels), logits=logits)

        model = poptorch.trainingModel(Named(), poptorch.Options().deviceIterations(2))
        return model(torch.zeros(8, 6), torch.zeros(8, dtype=torch.long))

    def test_dataclasses(self):
        result = self.results(Result)
        self.assertIsInstance(result, Result)
        self.assertEqual(tuple(result.logits.shape), (4, 3))
        self.assertIsNone(result.states)

    def test_tables_of_a_class_of_their_own(self):
        class Table(collections.OrderedDict):
            pass

        result = self.results(Table)
        self.assertIsInstance(result, Table)
        self.assertEqual(list(result), ["loss", "logits"])

    @needs("transformers")
    def test_models_of_transformers(self):
        from transformers import BertConfig, BertForSequenceClassification
        from transformers.modeling_outputs import SequenceClassifierOutput

        config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                            intermediate_size=16, vocab_size=20)
        model = poptorch.trainingModel(BertForSequenceClassification(config))
        result = model(input_ids=torch.zeros(2, 8, dtype=torch.long), labels=torch.tensor([0, 1]))
        self.assertIsInstance(result, SequenceClassifierOutput)
        self.assertEqual(tuple(result.logits.shape), (2, 2))


class CallTest(unittest.TestCase):
    """Calls return what the output mode promises, and train."""

    SHAPES = {
        poptorch.OutputMode.All: (24, 3),
        poptorch.OutputMode.Final: (4, 3),
        poptorch.OutputMode.Sum: (4, 3),
        poptorch.OutputMode.EveryN: (12, 3),
    }

    def call(self, mode, execute):
        options = two_stages().deviceIterations(6)
        options.outputMode(mode, 2 if mode == poptorch.OutputMode.EveryN else None)
        with unittest.mock.patch.dict(os.environ, {"TILESCOPE_EXECUTE": execute}):
            return poptorch.inferenceModel(Network().eval(), options)(torch.randn(24, 6))

    def test_output_modes(self):
        for mode, shape in self.SHAPES.items():
            for execute in ("all", "one", "none"):
                with self.subTest(mode=mode, execute=execute):
                    self.assertEqual(tuple(self.call(mode, execute).shape), shape)

    def test_one_micro_batch_runs_unless_all_are_asked_for(self):
        class Counted(Network):
            runs = 0

            def forward(self, x):
                if not torch.compiler.is_exporting():
                    type(self).runs += 1
                return super().forward(x)

        for mode, runs, words in [
            (None, 1, "one of the 6 micro-batches of a call runs .* TILESCOPE_EXECUTE=all"),
            ("all", 6, "on this CPU, which is what the script's own clock sees"),
            ("none", 0, "results are zeros"),
        ]:
            Counted.runs = 0
            text = io.StringIO()
            with unittest.mock.patch.dict(os.environ), contextlib.redirect_stderr(text):
                os.environ.pop("TILESCOPE_EXECUTE", None)
                if mode is not None:
                    os.environ["TILESCOPE_EXECUTE"] = mode
                options = two_stages().deviceIterations(6)
                poptorch.inferenceModel(Counted().eval(), options)(torch.randn(24, 6))
            self.assertEqual(Counted.runs, runs, mode)
            self.assertRegex(text.getvalue(), words)

    @unittest.mock.patch.dict(os.environ, {"TILESCOPE_EXECUTE": "all"})
    def test_training_is_that_of_the_whole_batch(self):
        """Averaged over equal micro-batches, the gradient is that of all samples at once."""
        torch.manual_seed(1)
        model, twin = Network(), Network()
        twin.load_state_dict(model.state_dict())
        x, labels = torch.randn(12, 6), torch.randint(0, 3, (12,))
        options = two_stages()
        options.Training.gradientAccumulation(3)
        optimizer = poptorch.optim.SGD(model.parameters(), lr=0.5)
        executor = poptorch.trainingModel(model, options, optimizer)
        out, loss = executor(x, labels)
        self.assertEqual((tuple(out.shape), loss.dim()), ((4, 3), 0))
        plain = torch.optim.SGD(twin.parameters(), lr=0.5)
        twin(x, labels)[1].backward()
        plain.step()
        for mine, theirs in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(mine, theirs)
        # The framework is not part of the program: its call of 24 ms is 31 million cycles.
        self.assertTrue(0 < executor.cycleCount() < 10e6)
        self.assertEqual(executor.report.summary()["execution"]["samples"], 12)

    def test_samples_that_do_not_divide_are_told(self):
        model = poptorch.inferenceModel(Network(), poptorch.Options().deviceIterations(5))
        with self.assertRaisesRegex(poptorch.Error, "not a multiple of the 5 micro-batches"):
            model(torch.zeros(24, 6))

    def test_accumulation_is_for_training(self):
        options = poptorch.Options()
        options.Training.gradientAccumulation(2)
        with self.assertRaisesRegex(poptorch.Error, "gradientAccumulation"):
            poptorch.inferenceModel(Network(), options)

    def test_optimizers_have_specs(self):
        weights = [nn.Parameter(torch.ones(2))]
        kinds = {
            "sgd": poptorch.optim.SGD(weights, lr=0.1),
            "sgd_momentum": poptorch.optim.SGD(weights, lr=0.1, momentum=0.9),
            "sgd_momentum_combined": poptorch.optim.SGD(
                weights, lr=0.1, momentum=0.9, use_combined_accum=True
            ),
            "adam": torch.optim.Adam(weights),
            "adamw": poptorch.optim.AdamW(weights, loss_scaling=128.0),
            "lamb": poptorch.optim.LAMB(weights),
        }
        for kind, optimizer in kinds.items():
            with self.subTest(kind=kind):
                self.assertEqual(poptorch.optim.kind_of(optimizer), kind)
                weights[0].grad = torch.ones(2)
                before = weights[0].detach().clone()
                optimizer.step()
                self.assertFalse(torch.equal(before, weights[0]))


class LoaderTest(unittest.TestCase):
    """A batch is what a call takes."""

    def test_combined_batches(self):
        options = poptorch.Options().deviceIterations(2).replicationFactor(3)
        options.Training.gradientAccumulation(4)
        data = torch.utils.data.TensorDataset(torch.zeros(100, 5))
        loader = poptorch.DataLoader(options, data, batch_size=2, num_workers=0)
        self.assertEqual(loader.combinedBatchSize, 48)
        self.assertEqual([tuple(batch.shape) for (batch,) in loader], [(48, 5), (48, 5)])
        self.assertEqual(len(loader), 2)

    def test_loaders_are_keys(self):
        data = torch.utils.data.TensorDataset(torch.zeros(100, 5))
        loader = poptorch.DataLoader(
            poptorch.Options(), data, mode=poptorch.DataLoaderMode.AsyncRebatched,
            rebatched_worker_size=1,
        )
        self.assertEqual(loader.spec()["options.host.loader"], "async_rebatched")
        self.assertEqual(loader.spec()["options.host.dataset_samples"], 100)

    def test_batch_samplers_are_combined(self):
        data = torch.utils.data.TensorDataset(torch.zeros(10, 5))
        sampler = torch.utils.data.BatchSampler(range(10), 2, drop_last=True)
        loader = poptorch.DataLoader(
            poptorch.Options().deviceIterations(2), data, batch_sampler=sampler
        )
        self.assertEqual([tuple(batch.shape) for (batch,) in loader], [(4, 5), (4, 5)])


if __name__ == "__main__":
    unittest.main()
