"""Whatever Python hands over, the answer is a result or an exception: no panic, no crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import unittest

import tilescope as ts
from tilescope import _toml, _tilescope, pva

from .support import SAMPLES, SMALL, sample, scratch

HOSTILE = [
    None,
    True,
    -1,
    2**31,
    2**63,
    2**70,
    -(2**70),
    0.5,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "a\0b",
    "x" * 100_000,
    b"\xff",
    [],
    [None],
    [float("nan")],
    (1, "a"),
    {},
    {1: object()},
    object(),
    int,
    "cycles > +1e999%",
    "name:/(/",
    "../../etc/passwd",
]

# What starts programs, or is about the file system, has tests of its own.
COMMANDS = {"calibrate", "close", "export", "html", "insights", "samples", "slice", "verify", "why"}
ELSEWHERE = {"picture", "to_arrow", "to_pandas", "to_polars", "install", "openTrace", *COMMANDS}


def panicked(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


class Arguments(unittest.TestCase):
    def ask(self, function, *arguments, **keywords) -> None:
        try:
            found = function(*arguments, **keywords)
            repr(found)
        except Exception:
            return
        except BaseException as error:  # noqa: BLE001: a panic is none of Exception
            self.assertFalse(panicked(error), f"{function} {str(arguments)[:200]} {keywords}")
            raise

    def ask_everything(self, thing, names) -> None:
        for name in names:
            function = getattr(thing, name, None)
            if name in ELSEWHERE or not callable(function):
                continue
            self.ask(function)
            for one in HOSTILE:
                self.ask(function, one)
                self.ask(function, one, one)
                self.ask(function, "steps", one)
                self.ask(function, *[one] * 7)

    def test_every_function_and_method_takes_anything(self):
        report = sample("matmul_chain")
        comparison = report.compare(report)
        steps = report.table("steps")
        things = [report, report._core, comparison, comparison._core, steps, steps._core]
        for thing in things:
            names = [name for name in dir(type(thing)) if not name.startswith("_")]
            self.ask_everything(thing, [*names, "__getitem__", "__arrow_c_stream__"])
        module = [name for name in dir(_tilescope) if name[0].islower()]
        self.assertIn("table_of_columns", module)
        self.ask_everything(_tilescope, module)
        self.ask_everything(ts, ["open", "Table", "Report", "Comparison", "SpecError"])
        self.ask_everything(ts.Table, ["from_columns"])

    def test_keywords_take_anything(self):
        report = sample("matmul_chain")
        for one in HOSTILE:
            self.ask(report.table, "steps", ipus=one)
            self.ask(report.table, "steps", cycles=one)
            self.ask(report.table, "steps", cycles=(one, one))
            self.ask(report.table, "steps", ipus=[one])
            self.ask(report.find, "in:steps", limit=one)
            self.ask(report.compare, report, per=one)
            self.ask(report.sql, "SELECT ?", [one])
            self.ask(_toml.value, one)
            self.ask(ts.Table.from_columns, {"a": [one, 1], "b": [1, one]})

    def test_every_object_of_pva_takes_anything(self):
        seen = set()

        def walk(thing, depth: int) -> None:
            kind = type(thing)
            if kind in seen or kind.__module__ not in ("tilescope.pva", "tilescope._tilescope"):
                return
            seen.add(kind)
            names = [name for name in dir(thing) if not name.startswith("_")]
            special = ["__getitem__", "__contains__", "__eq__", "__lt__", "__hash__", "accept"]
            self.ask_everything(thing, [*names, *special])
            self.ask(setattr, thing, "anything", 1)
            for name in names:
                try:
                    found = getattr(thing, name)
                except AttributeError:
                    continue
                walk(found, depth + 1)
                if isinstance(found, _tilescope._pva.List) and len(found):
                    walk(found[0], depth + 1)
                    walk(found[-1], depth + 1)

        opened = pva.openReport(SAMPLES / "mnist_pipeline")
        walk(opened, 0)
        walk(pva.OperationAnalysis(opened), 0)
        walk(pva.OperationAnalysis(opened).operations[3], 0)
        self.assertGreater(len(seen), 25)
        for one in HOSTILE:
            self.ask(pva.openReport, one)
            self.ask(pva.openReport, SAMPLES / "matmul_chain", one)
            self.ask(pva.OperationAnalysis, one)

    def test_simulations_take_anything(self):
        for one in HOSTILE:
            if isinstance(one, str) and "/" not in one and one.isascii() and "\0" not in one:
                continue
            self.ask(ts.simulate, one, progress=False)
        few = [None, 2**70, float("nan"), "\ud800", "a\0b", [None], {1: object()}, object()]
        for one in few:
            self.ask(ts.simulate, SMALL, set=one)
            self.ask(ts.simulate, SMALL, set={"model.m": one})
            self.ask(ts.simulate, SMALL, set={one if one.__hash__ else 1: 1})
            self.ask(ts.simulate, {"model": {"name": one}})
            self.ask(ts.sweep, SMALL, {"model.m": one})
            self.ask(ts.sweep, SMALL, one)
        for one in ["\ud800", "a\0b", b"\xff\0"]:
            self.ask(ts.simulate, SMALL, output=one)


class Files(unittest.TestCase):
    def setUp(self):
        self.file = scratch() / f"{self.id()}.pop"
        shutil.copy(SAMPLES / "matmul_chain" / "profile.pop", self.file)

    def read_all(self, report) -> None:
        for ask in [report.summary, report.insights, lambda: report.find("a")]:
            try:
                ask()
            except (ts.ReportError, ts.QueryError):
                pass
        for name in report.tables:
            try:
                report.table(name).to_pydict()
            except (ts.ReportError, ts.QueryError, RuntimeError):
                pass

    def test_a_file_that_is_deleted_while_it_is_open(self):
        report = ts.open(self.file)
        handle = pva.openReport(self.file)
        os.unlink(self.file)
        self.read_all(report)
        try:
            sum(step.ipus[0].cycles for step in handle.execution.steps)
        except ts.ReportError:
            pass
        with self.assertRaises(ts.ReportError):
            ts.open(self.file)
        # A question opens the file anew.
        with self.assertRaises(ts.ReportError):
            report.sql("SELECT 1")

    def test_a_file_that_is_cut_or_overwritten_while_it_is_open(self):
        size = os.path.getsize(self.file)
        for cut in [0, 100, size // 2]:
            report = ts.open(self.file)
            os.truncate(self.file, cut)
            self.read_all(report)
            shutil.copy(SAMPLES / "matmul_chain" / "profile.pop", self.file)
        report = ts.open(self.file)
        with open(self.file, "r+b") as file:
            file.seek(size // 3)
            file.write(b"\xff" * (size // 3))
        self.read_all(report)


class Threads(unittest.TestCase):
    def test_many_threads_ask_one_report_alike(self):
        report = ts.open(SAMPLES / "mnist_pipeline")
        handle = pva.openReport(SAMPLES / "mnist_pipeline")
        expected = ts.open(SAMPLES / "mnist_pipeline").summary()
        rows = len(report.table("steps"))
        problems = []

        def ask() -> None:
            try:
                assert report.summary() == expected
                assert len(report.table("steps")["cycles"]) == rows
                assert len(report.find("Convolve")) > 0
                found = sum(step.ipus[0].cycles for step in handle.execution.steps[:500])
                assert found > 0
                assert len(handle.compilation.loweredVariables.allBriefVars) > 0
            except BaseException as error:  # noqa: BLE001: told by the main thread
                problems.append(repr(error))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_process_reads_on(self):
        code = (
            "import os, sys, tilescope as ts; from tilescope import pva\n"
            f"r = ts.open({str(SAMPLES / 'mnist_pipeline')!r}); h = pva.openReport(r.path)\n"
            "s = r.summary(); n = len(r.table('steps')['name']); h.execution.steps[0].ipus[0].cycles\n"
            "r.compare(r).summary(); r.insights()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    ok = r.summary() == s and len(r.table('steps')['name']) == n\n"
            "    ok = ok and sum(x.ipus[0].cycles for x in h.execution.steps) > 0\n"
            "    ok = ok and r.compare(r).check('cycles > +0%') == []\n"
            "    os._exit(0 if ok else 1)\n"
            "_, status = os.waitpid(child, 0); sys.exit(os.waitstatus_to_exitcode(status))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
