"""Code of Lightning's guide to IPUs."""

import textwrap
import unittest
import unittest.mock

from .guides import GuideTest
from .support import needs


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

        with unittest.mock.patch.object(pl, "Trainer", pl.Trainer):
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
        # Poplar's environment variable would come first.
        before = "import os\ndel os.environ['POPLAR_ENGINE_OPTIONS']"
        self.run_script(before, """
            import pytorch_lightning as pl
            from pytorch_lightning.plugins import IPUPlugin

            model = MyLightningModule()
            trainer = pl.Trainer(ipus=8, plugins=IPUPlugin(autoreport_dir="report_dir/"))
            trainer.fit(model)
        """)
        self.assertTrue((self.directory / "report_dir" / "training" / "profile.pop").exists())

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


if __name__ == "__main__":
    unittest.main()
