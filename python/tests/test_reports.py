"""Reports, tables, questions."""

from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
import unittest
from contextlib import closing
from pathlib import Path

import tilescope as ts

from .support import SAMPLES, needs, sample, scratch


class Reports(unittest.TestCase):
    def setUp(self):
        self.report = sample("mnist_pipeline")

    def test_figures_are_those_of_the_command_line(self):
        summary = self.report.summary()
        self.assertEqual(summary["target"], self.report.target)
        self.assertEqual(summary["target"]["ipus_per_replica"], 4)
        self.assertGreater(summary["execution"]["total_cycles"], 10**6)
        self.assertIn("mnist", self.report.spec)
        self.assertEqual(self.report.meta["generator"].split()[0], "tilescope")
        limits = summary["limits"]
        self.assertTrue(0 < limits["utilisation"] < 1)
        shares = sum(step["share"] for step in limits["waterfall"])
        self.assertAlmostEqual(shares, 1)
        cycles = sum(step["cycles"] for step in limits["waterfall"])
        self.assertEqual(cycles, limits["ipu_cycles"])
        for finding in self.report.insights():
            self.assertTrue(finding["rule"] and finding["sentence"])

    def test_what_is_no_report_is_an_exception_that_names_the_path(self):
        for path in ["/nowhere", str(SAMPLES), __file__]:
            with self.assertRaises(ts.ReportError) as caught:
                ts.open(path)
            self.assertIn(path, str(caught.exception))

    def test_hostile_input_is_an_exception(self):
        cut = scratch() / "cut.pop"
        whole = (SAMPLES / "matmul_chain" / "profile.pop").read_bytes()
        for size in [0, 1, 16, 100, 4096, len(whole) // 2, len(whole) - 1]:
            cut.write_bytes(whole[:size])
            with self.assertRaises(ts.ReportError):
                report = ts.open(cut)
                for name in report.tables:
                    report.table(name).to_pydict()
        for arguments in [{"ipus": [-1]}, {"ipus": [2**40]}, {"ipus": "x"}, {"cycles": (2, 1)},
                          {"cycles": (-1, 1)}, {"cycles": (0, 2**70)}, {"cycles": 5}]:
            with self.assertRaises((TypeError, ValueError, OverflowError), msg=arguments):
                self.report.table("steps", **arguments)
        with self.assertRaises(ts.ReportError):
            ts.open("nul\0byte")
        with self.assertRaises(TypeError):
            ts.open(None)

    def test_every_table_can_be_read_in_every_sample(self):
        for name in ["matmul_chain", "too_large"]:
            report = sample(name)
            for table in report.tables:
                found = report.table(table)
                rows = found.to_pylist()
                self.assertEqual(len(rows), len(found), table)
                self.assertEqual(len(set(found.columns)), len(found.columns), table)

    def test_operations_are_grouped(self):
        name = "operations/operations"
        rows = self.report.table(name).to_pylist()
        groups = self.report.table(name, group_by="operator").to_pylist()
        self.assertEqual(sum(group["rows"] for group in groups), len(rows))
        cycles = sum(row["cycles_run"] for row in rows)
        self.assertEqual(sum(group["cycles_run"] for group in groups), cycles)
        for arguments in [{"group_by": "nonsense"}, {"group_by": "layer", "ipus": [0]}]:
            with self.assertRaises(ValueError, msg=arguments):
                self.report.table(name, **arguments)
        with self.assertRaises(ValueError):
            self.report.table("steps", group_by="layer")

    def test_every_topic_says_what_tables_and_figures_have(self):
        for name in ["matmul_chain", "too_large"]:
            report = sample(name)
            for topic, about in report.topics.items():
                found = report.topic(topic)
                self.assertEqual((found["topic"], found["about"]), (topic, about))
                for table in found["tables"]:
                    rows = len(report.table(f"{topic}/{table['name']}"))
                    self.assertEqual(rows, len(table["rows"]), f"{topic}/{table['name']}")
        with self.assertRaises(ts.QueryError):
            self.report.topic("nothing")

    def test_unknown_names_say_what_there_is(self):
        asks = [
            lambda: self.report.table("stepz"),
            lambda: self.report.table("memory/nothing"),
            lambda: self.report.table("steps")["cyclez"],
            lambda: self.report.compare(self.report).table("memry"),
            lambda: self.report.compare(self.report, per="tile"),
            lambda: self.report.find("cycles>x"),
        ]
        for ask in asks:
            with self.assertRaises(ts.QueryError) as caught:
                ask()
            self.assertGreater(len(str(caught.exception)), 20)

    def test_a_report_differs_from_itself_in_nothing(self):
        comparison = self.report.compare(self.report)
        self.assertIn("verdict", comparison.summary())
        for view in comparison.views:
            for name in comparison.tables(view):
                table = comparison.table(name)
                if "diff" in table.columns:
                    self.assertFalse([d for d in table["diff"] if d not in (0, "0", "", None)], name)

    def test_gates_are_judged_and_marked_where_they_are_wrong(self):
        other = self.report
        comparison = sample("matmul_chain").compare(other)
        self.assertEqual(self.report.compare(self.report).check("cycles > +0%", "memory > +0 B"), [])
        cycles, tile = comparison.check("execution.total_cycles > +2%", "max_tile > 1 KiB")
        self.assertEqual(cycles.figure, "execution.total_cycles")
        self.assertGreater(cycles.target, cycles.source)
        self.assertIn("it grew by", str(cycles))
        self.assertEqual(tile.target, other.summary()["memory"]["max_tile_including_gaps"])
        for gate, place in [("cyclez > +2%", 0), ("cycles > +2 KiB", 12), ("cycles", 6)]:
            with self.assertRaises(ts.QueryError) as caught:
                comparison.check(gate)
            self.assertEqual(str(caught.exception).splitlines()[-1].index("^"), 2 + place, gate)
        with self.assertRaises(TypeError):
            comparison.check(3)

    def test_markdown_has_the_verdict_and_tables(self):
        comparison = sample("matmul_chain").compare(self.report)
        lines = comparison.markdown(3).splitlines()
        self.assertTrue(lines[0].startswith("**The target takes"))
        self.assertIn("|---|---:|---:|---:|", lines)
        self.assertTrue(any(line.startswith("| … ") for line in lines))

    def test_found_things_match(self):
        found = self.report.find("in:steps type:OnTileExecute cycles>1k", limit=5)
        self.assertTrue(0 < len(found) <= 5)
        self.assertEqual(set(found["type"]), {"OnTileExecute"})

    def test_reports_can_be_sent_to_other_processes(self):
        again = pickle.loads(pickle.dumps(self.report))
        self.assertEqual(again.summary(), self.report.summary())

    def test_notebooks_show_what_is_there(self):
        self.assertIn("cycles", self.report._repr_html_())
        self.assertIn("<table>", self.report.table("operations")._repr_html_())
        self.assertIn("<p>", self.report.compare(self.report)._repr_html_())

    def test_importing_starts_no_program_and_no_heavy_module(self):
        heavy = "subprocess, sqlite3, json, html, tempfile, concurrent.futures, numpy"
        code = f"import sys, tilescope; print([n for n in '{heavy}'.split(', ') if n in sys.modules])"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout.strip(), "[]")


class Steps(unittest.TestCase):
    def setUp(self):
        self.report = sample("mnist_pipeline")

    def test_steps_are_those_of_the_file(self):
        base = "cycles_base + active_cycles_"
        query = (
            f"SELECT ipu, sub_lane, step_id, {base}from_max, {base}to_max, active_tiles, bytes_in "
            "FROM steps_by_ipu ORDER BY ipu, sub_lane, step_id"
        )
        with closing(sqlite3.connect(f"file:{self.report.path}?mode=ro", uri=True)) as connection:
            expected = connection.execute(query).fetchall()
        rows = self.report.table("steps").to_pydict()
        names = ["ipu", "sub_lane", "step_id", "from_cycle", "to_cycle", "active_tiles", "bytes_in"]
        self.assertEqual(list(zip(*(rows[name] for name in names))), expected)
        lengths = [end - start for start, end in zip(rows["from_cycle"], rows["to_cycle"])]
        self.assertEqual(rows["cycles"], lengths)

    def test_a_window_and_ipus_select_what_touches_them(self):
        everything = self.report.table("steps").to_pylist()
        window = (10**6, 10**6 + 50_000)
        found = self.report.table("steps", ipus=[1, 2], cycles=window).to_pylist()
        touches = [
            row
            for row in everything
            if row["ipu"] in (1, 2)
            and row["from_cycle"] < window[1]
            and max(row["to_cycle"], row["from_cycle"] + 1) > window[0]
        ]
        self.assertEqual(found, touches)
        self.assertEqual(len(self.report.table("steps", ipus=[])), 0)

    def test_what_ran_adds_up_to_the_summary(self):
        rows = self.report.table("steps").to_pydict()
        total = self.report.summary()["execution"]["total_cycles"]
        self.assertEqual(max(rows["to_cycle"]) - min(rows["from_cycle"]), total)


class Questions(unittest.TestCase):
    def setUp(self):
        self.report = sample("matmul_chain")

    def test_a_question_gets_typed_columns(self):
        table = self.report.sql("SELECT 1 AS a, 2.5 AS b, 'x' AS c, NULL AS d, 2 AS a")
        self.assertEqual(
            table.to_pylist(), [{"a": 1, "b": 2.5, "c": "x", "d": None, "a_2": 2}]
        )
        programs = self.report.sql("SELECT count(*) AS programs FROM programs")
        self.assertEqual(programs["programs"], [len(self.report.table("programs"))])
        self.assertEqual(len(self.report.sql("SELECT id FROM programs WHERE id < ?", [0])), 0)

    def test_nothing_can_be_changed(self):
        before = Path(self.report.path).read_bytes()
        other = scratch() / "other.db"
        for query in [
            "DELETE FROM programs",
            "CREATE TABLE x (y)",
            "UPDATE target SET clock_hz = 1",
            f"ATTACH '{other}' AS other",
            "PRAGMA journal_mode = WAL",
            "SELECT load_extension('x')",
            f"VACUUM INTO '{other}'",
            "SELECT 1; SELECT 2",
            "nonsense",
        ]:
            with self.assertRaises(ts.QueryError, msg=query):
                self.report.sql(query)
        self.assertFalse(other.exists())
        self.assertEqual(Path(self.report.path).read_bytes(), before)


class Libraries(unittest.TestCase):
    def setUp(self):
        self.table = sample("mnist_pipeline").table("steps", ipus=[0])
        self.cycles = sum(self.table["cycles"])

    @needs("pyarrow")
    def test_pyarrow(self):
        table = self.table.to_arrow()
        table.validate(full=True)
        self.assertEqual(table.num_rows, len(self.table))
        self.assertEqual(sum(table["cycles"].to_pylist()), self.cycles)

    @needs("pandas", "pyarrow")
    def test_pandas(self):
        frame = self.table.to_pandas()
        self.assertEqual(int(frame["cycles"].sum()), self.cycles)
        self.assertIn("OnTileExecute", set(frame["type"]))

    @needs("polars")
    def test_polars(self):
        frame = self.table.to_polars()
        self.assertEqual(frame["cycles"].sum(), self.cycles)
        self.assertEqual(frame.columns, self.table.columns)

    @needs("duckdb")
    def test_duckdb(self):
        import duckdb

        steps = self.table  # noqa: F841: the question names it
        self.assertEqual(duckdb.sql("select sum(cycles) from steps").fetchall(), [(self.cycles,)])

    @needs("numpy")
    def test_numpy(self):
        arrays = self.table.to_numpy()
        self.assertEqual(int(arrays["cycles"].sum()), self.cycles)
        self.assertEqual(arrays["type"].dtype, object)


if __name__ == "__main__":
    unittest.main()
