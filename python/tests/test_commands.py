"""Commands of the program as functions."""

from __future__ import annotations

import inspect
import re
import unittest

import tilescope as ts
from tilescope._program import run

from .support import SMALL, REPOSITORY, sample, scratch


def standing_in(name: str):
    """The function or method of a name in `COMMANDS`."""
    found = ts
    for part in name.split("."):
        found = getattr(found, part)
    return found


class Commands(unittest.TestCase):
    def test_every_command_has_a_function(self):
        listed = run(["--help"])[0].split("Commands:\n")[1].split("\n\n")[0]
        commands = re.findall(r"^  (\w+)", listed, re.MULTILINE)
        self.assertGreater(len(commands), 20)
        self.assertEqual(sorted(ts.COMMANDS), sorted(commands))
        for command, name in ts.COMMANDS.items():
            with self.subTest(command):
                if name is not None:
                    self.assertTrue(inspect.getdoc(standing_in(name)))
                else:
                    self.assertIn(command, ("mcp", "completions", "man", "help"))

    def test_answers_are_those_of_the_program(self):
        report = sample("mnist_pipeline")
        self.assertEqual(report.why()["cycles"], report.summary()["execution"]["total_cycles"])
        self.assertNotEqual(report.why(at="10"), report.why())
        self.assertEqual(report.verify(), [])
        self.assertIn("mnist_pipeline", ts.specs())
        self.assertIn("options.num_io_tiles", ts.keys())
        self.assertTrue(all({"name", "source"} <= set(number) for number in ts.model()))

    def test_measured_runs_are_told(self):
        measured = ts.open(REPOSITORY / "tests" / "data" / "versions" / "2.7-samples")
        self.assertTrue(measured.samples(by="phase"))
        self.assertTrue(sample("matmul_chain").calibrate(limit=1, jobs=1))

    def test_files_are_written(self):
        report = sample("mnist_pipeline")
        page = report.html(scratch() / "page.html")
        with open(page, encoding="utf-8") as file:
            self.assertIn("</html>", file.read())
        table = report.export(scratch() / "operations.csv", view="operations")
        with open(table, encoding="utf-8") as file:
            self.assertGreater(len(file.readlines()), 5)
        end = report.summary()["execution"]["total_cycles"]
        part = report.slice(scratch() / "part", cycles=(0, end // 2))
        self.assertEqual(part.verify(), [])
        self.assertLess(part.summary()["execution"]["total_cycles"], end)

    def test_searches_take_specs_of_every_kind(self):
        found = ts.sensitivity(SMALL, operations=1)
        self.assertTrue(found)
        other = {**SMALL, "model": {**SMALL["model"], "m": 128}}
        self.assertTrue(ts.bisect(SMALL, other, budget=8, jobs=1))
        self.assertTrue(ts.tune(SMALL, budget=3, jobs=1))
        # What was tried is kept beside the report.
        proven = ts.simulate(SMALL, output=scratch() / "proven").insights(prove=True, jobs=1)
        tried = [finding for finding in proven if finding.get("changes")]
        self.assertTrue(tried and all("measured" in finding for finding in tried))

    def test_series_take_reports(self):
        report = sample("mnist_pipeline")
        self.assertTrue(ts.series(report, report))

    def test_unknown_options_are_refused_with_the_nearest(self):
        with self.assertRaises(ts.SpecError) as caught:
            sample("mnist_pipeline").why(limmit=3)
        self.assertIn("--limit", str(caught.exception))

    def test_onnx_files_are_listed(self):
        files = sorted((REPOSITORY / "tests" / "data").rglob("*.onnx"))
        self.assertTrue(ts.onnx(files[0], no_fit=True))

    def test_reports_are_closed(self):
        with ts.open(REPOSITORY / "sample_reports" / "matmul_chain") as report:
            self.assertTrue(report.summary())
        report.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            report.summary()

    def test_tables_are_rows_too(self):
        table = sample("mnist_pipeline").table("memory_by_tile")
        rows = list(table)
        self.assertEqual(len(rows), len(table))
        self.assertEqual(table[2:5].to_pylist(), rows[2:5])
        self.assertEqual(list(table[::-1])[0], rows[-1])
        self.assertEqual(list(table.head(3)), rows[:3])
        with self.assertRaises(TypeError):
            table[1]
