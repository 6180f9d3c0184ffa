"""Simulations and sweeps: whatever starts the program."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import unittest
import unittest.mock
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import tilescope as ts
from tilescope import _toml

from .support import SMALL, needs, scratch


class Simulations(unittest.TestCase):
    def test_names_dicts_files_and_reports_are_specs(self):
        report = ts.simulate(SMALL, output=scratch() / "small")
        self.assertEqual(Path(report.path), scratch() / "small" / "profile.pop")
        file = scratch() / "small.toml"
        file.write_text(_toml.document(SMALL))
        for spec in [str(file), file, report]:
            again = ts.simulate(spec)
            self.assertEqual(again.summary(), report.summary())
        directory = Path(again.path).parent
        self.assertTrue(directory.exists())
        del again
        self.assertFalse(directory.exists(), "a report that nobody keeps goes")

    def test_keys_can_be_set_and_progress_is_told(self):
        told = []
        report = ts.simulate(SMALL, set={"model.m": 128}, progress=told.append)
        self.assertIn("128", report.table("operations")["shapes"][0])
        self.assertEqual(told, sorted(told))

    def test_operations_of_onnx_files_say_which_nodes_they_are_of(self):
        file = Path(__file__).resolve().parents[2] / "tests/data/onnx/guide_mnist.onnx"
        report = ts.simulate(str(file))
        self.assertIn("Conv@11", list(report.table("operations")["source"]))
        self.assertEqual(report.summary()["model"]["opset"], 11)

    def test_keys_have_arguments_of_their_own(self):
        wishes = {"target": "bow", "training": False, "options": {"partials_type": "float16"}}
        report = ts.simulate(SMALL, **wishes)
        keys = {"target.name": "bow", "options.partials_type": "float16"}
        self.assertEqual(report.summary(), ts.simulate(SMALL, set=keys).summary())
        stages = {"B1": 0, "B2": 1, "B3": 1, "B4": 0}
        report = ts.simulate("mnist_pipeline", stages=stages, ipus=2, optimizer="sgd")
        self.assertEqual(report.summary()["target"]["num_ipus"], 2)
        for wrong in [{"stages": 3}, {"stages": "x"}, {"stages": [[3]]}, {"stages": {"B1": -1}},
                      {"loss": len}, {"optimizer": 3}, {"inputs": 3}]:
            with self.assertRaises((TypeError, ValueError), msg=wrong):
                ts.simulate("mnist_pipeline", **wrong)

    @needs("onnx")
    def test_models_of_onnx_are_simulated_and_kept_with_the_report(self):
        from onnx import TensorProto, helper

        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [8, 8]) for n in "xyz"]
        node = helper.make_node("MatMul", ["x", "y"], ["z"])
        graph = helper.make_graph([node], "graph", values[:2], values[2:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        report = ts.simulate(model, training=False, output=scratch() / "onnx")
        self.assertIn("matmul", report.table("operations")["kind"])
        self.assertTrue((scratch() / "onnx" / "model.onnx").exists())

    def test_a_refused_spec_says_where_and_what_was_meant(self):
        file = scratch() / "wrong.toml"
        file.write_text('[model]\nname = "matmul_chain"\n[options]\nnum_io_tile = 32\n')
        with self.assertRaises(ts.SpecError) as caught:
            ts.simulate(file)
        error = caught.exception
        self.assertEqual((error.file, error.line), (str(file), 4))
        self.assertEqual((error.key, error.nearest), ("options.num_io_tile", "options.num_io_tiles"))
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
        with self.assertRaises(ts.SpecError) as caught:
            ts.simulate(SMALL, set={"model.mm": 1})
        self.assertEqual((caught.exception.key, caught.exception.line), ("model.mm", None))
        with self.assertRaises(ts.SpecError):
            ts.simulate("no_such_spec")

    def test_hostile_specs_are_exceptions(self):
        for spec, kind in [
            ({}, ts.SpecError),
            ({"model": 3}, TypeError),
            ({"model": {"name": object()}}, TypeError),
            ({"model": {"name": "a\0b\"\\\n"}}, ts.SpecError),
            ({"model": {"name": "matmul_chain", "m": 2**100}}, ts.SpecError),
            (3, TypeError),
            ("-o", ts.SpecError),
        ]:
            with self.assertRaises(kind, msg=spec):
                ts.simulate(spec)
        with self.assertRaises((ts.SimulationError, OSError)):
            ts.simulate(SMALL, output="/proc/nowhere")

    def test_without_the_program_it_says_so(self):
        with unittest.mock.patch.dict(os.environ, {"TILESCOPE_EXECUTABLE": "/nowhere/tilescope"}):
            with self.assertRaises(OSError):
                ts.simulate(SMALL)

    @unittest.skipIf(os.name == "nt", "signals of POSIX")
    def test_an_interrupt_ends_the_program(self):
        slow = {"options.device_iterations": 100_000}
        code = f"import tilescope; tilescope.simulate('mnist_pipeline', set={slow!r}, progress=print)"
        started = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        started.stdout.readline()
        started.send_signal(signal.SIGINT)
        self.assertNotEqual(started.wait(20), 0)
        # Whoever still held the pipe would keep this from ending.
        started.stdout.read()
        started.stdout.close()

    def test_warnings_of_a_spec_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ts.simulate(SMALL)
        self.assertFalse([of for of in caught if "tilescope" in str(of.category)])


class Sweeps(unittest.TestCase):
    vary = {"model.m": [64, 128], "model.n": [64, 96]}

    def test_every_combination_is_a_row(self):
        table = ts.sweep(SMALL, self.vary, jobs=2)
        rows = table.to_pylist()
        self.assertEqual(
            [(row["model.m"], row["model.n"]) for row in rows],
            [(64, 64), (64, 96), (128, 64), (128, 96)],
        )
        alone = ts.simulate(SMALL, set={"model.m": 128, "model.n": 96}).summary()
        self.assertEqual(rows[-1]["cycles"], alone["execution"]["total_cycles"])
        self.assertTrue(all(row["fits"] for row in rows))
        for row in rows:
            for name in ["cycles", "seconds", "max_tile_bytes"]:
                self.assertLess(row[f"{name}_low"], row[name])
                self.assertLess(row[name], row[f"{name}_high"])

    def test_what_does_not_fit_or_is_refused_is_said_or_left_out(self):
        vary = {"model.m": [64, -1]}
        rows = ts.sweep(SMALL, vary).to_pylist()
        self.assertIs(rows[0]["fits"], True)
        self.assertIs(rows[1]["fits"], False)
        self.assertIn("model.m", rows[1]["error"])
        self.assertEqual(len(ts.sweep(SMALL, vary, where="fits")), 1)

    def test_an_executor_gives_the_same(self):
        here = ts.sweep(SMALL, self.vary).to_pydict()
        with ProcessPoolExecutor(1) as executor:
            there = ts.sweep(SMALL, self.vary, jobs=executor).to_pydict()
        self.assertEqual(here, there)

    def test_reports_are_kept_where_asked(self):
        rows = ts.sweep(SMALL, {"model.m": [64]}, output=scratch() / "sweep").to_pylist()
        report = ts.open(rows[0]["report"])
        self.assertEqual(report.summary()["execution"]["total_cycles"], rows[0]["cycles"])

    def test_what_cannot_be_meant_is_an_exception(self):
        for arguments in [
            {"vary": {"cycles": [1]}},
            {"vary": {"model.m": "64"}},
            {"vary": {"model.m": [1]}, "where": "fast"},
            {"vary": {"model.m": [1]}, "jobs": 0},
        ]:
            with self.assertRaises((TypeError, ValueError), msg=arguments):
                ts.sweep(SMALL, **arguments)


class Toml(unittest.TestCase):
    def test_values_come_back(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("Python 3.10 has no tomllib")
        spec = {
            "model": {"name": 'a"b\\c\n\x00\x7fé', "sizes": [1, 2.5, True], "empty": []},
            "options": {"stages": [["B1"], ["B2", "B3"]], "x.y": 1e300, "big": -(2**60)},
        }
        expected = {**spec, "options": {**spec["options"], "x": {"y": 1e300}}}
        del expected["options"]["x.y"]
        self.assertEqual(tomllib.loads(_toml.document(spec)), expected)


class CommandLine(unittest.TestCase):
    def test_the_command_is_the_program(self):
        said = subprocess.run(
            [sys.executable, "-m", "tilescope", "--version"], capture_output=True, text=True
        )
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("tilescope", said.stdout)

    def test_pictures_are_what_the_program_draws(self):
        report = ts.simulate(SMALL)
        try:
            picture = report.picture("memory", format="svg", size=(640, 400))
        except ts.SpecError as error:
            self.assertIn("gui", str(error))
            self.skipTest("the program was built without pictures")
        self.assertIn("<svg", picture._repr_svg_())
        self.assertIsNone(picture._repr_png_())
        picture.save(scratch() / "memory.svg")
        with self.assertRaises(ts.SpecError):
            report.picture("no-such-view")


if __name__ == "__main__":
    unittest.main()
