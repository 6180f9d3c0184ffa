"""`tilescope.types` against real answers."""

from __future__ import annotations

import typing
import unittest
from pathlib import Path

import tilescope as ts
from tilescope import types

from .support import REPOSITORY, SMALL, sample

VERSIONS = REPOSITORY / "tests" / "data" / "versions"


def is_typed_dict(kind) -> bool:
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__")


def problems(value, kind, place: str) -> list[str]:
    """Where a value is not what a type says."""
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if kind is typing.Any:
        return []
    if origin is typing.Union:
        if value is None and type(None) in arguments:
            return []
        tried = [problems(value, of, place) for of in arguments if of is not type(None)]
        return min(tried, key=len)
    if is_typed_dict(kind):
        if not isinstance(value, dict):
            return [f"{place} is no object: {value!r}"]
        declared = typing.get_type_hints(kind)
        missing = kind.__required_keys__ - set(value)
        found = [f"{place}.{key} is missing" for key in sorted(missing)]
        found += [f"{place}.{key} is not declared" for key in sorted(set(value) - set(declared))]
        for key in set(declared) & set(value):
            found += problems(value[key], declared[key], f"{place}.{key}")
        return found
    if origin is list:
        return [
            problem
            for at, entry in enumerate(value)
            for problem in problems(entry, arguments[0], f"{place}[{at}]")
        ]
    if origin is dict:
        return [
            problem
            for key, entry in value.items()
            for problem in problems(entry, arguments[1], f"{place}.{key}")
        ]
    # A whole number is a real one, too.
    kinds = (int, float) if kind is float else kind
    if isinstance(value, bool) and kind is not bool or not isinstance(value, kinds):
        return [f"{place} is no {kind.__name__}: {value!r}"]
    return []


class Types(unittest.TestCase):
    def check(self, value, kind) -> None:
        found = problems(value, kind, kind.__name__ if is_typed_dict(kind) else "answer")
        self.assertEqual(found, [])

    def test_summaries_have_the_keys_that_are_declared(self):
        names = ("mnist_pipeline", "matmul_chain", "too_large")
        reports = [sample(name) for name in names] + [ts.open(path) for path in versions()]
        for report in reports:
            with self.subTest(report.path):
                self.check(report.summary(), types.Summary)
                self.assertTrue(report._repr_html_())

    def test_other_answers_too(self):
        report, other = sample("mnist_pipeline"), sample("matmul_chain")
        self.check(report.insights(), typing.List[types.Finding])
        self.check(report.why(), types.Why)
        self.check(report.topic("limits"), types.TopicAnswer)
        self.check(report.compare(other).summary(), types.ComparisonSummary)
        proven = ts.simulate(SMALL).insights(prove=True, jobs=1)
        self.check(proven, typing.List[types.Finding])

    def test_schemas(self):
        report = sample("mnist_pipeline")
        self.check(report.schema, typing.Dict[str, types.TableSchema])
        columns = {column["name"]: column for column in report.schema["memory_by_tile"]["columns"]}
        self.assertEqual(columns["total"]["unit"], "bytes")
        for name in report.tables:
            with self.subTest(name):
                table = report.table(name)
                self.check(table.schema, typing.List[types.ColumnSchema])
                self.assertEqual([column["name"] for column in table.schema], table.columns)
        units = {column["name"]: column["unit"] for column in report.table("steps").schema}
        self.assertEqual(units["cycles"], "cycles")

    def test_what_is_wrong_is_found(self):
        wrong = {**sample("matmul_chain").summary(), "extra": 1, "graph": {"vertices": "many"}}
        found = problems(wrong, types.Summary, "summary")
        self.assertIn("summary.extra is not declared", found)
        self.assertIn("summary.graph.edges is missing", found)
        self.assertTrue(any("no int" in problem for problem in found), found)


def versions() -> list[Path]:
    """Reports of each format that are kept."""
    return sorted(path for path in VERSIONS.iterdir() if path.is_dir())


class Plots(unittest.TestCase):
    def test_every_figure_is_a_picture(self):
        report = sample("mnist_pipeline")
        self.assertGreater(len(report.figures), 5)
        for name in report.figures:
            plot = report.plot(name)
            self.assertEqual(plot.name, name)
            self.assertTrue(plot._repr_svg_().startswith("<svg xmlns"))
            self.assertIn(plot.svg, plot._repr_html_())
        self.assertTrue(report.plot("limits").name.startswith("limits/"))
        self.assertNotEqual(report.plot("limits").svg, report.plot("limits", theme="dark").svg)

    def test_pictures_are_xml(self):
        import xml.etree.ElementTree as tree

        for name in ("mnist_pipeline", "too_large"):
            report = sample(name)
            for figure in report.figures:
                tree.fromstring(report.plot(figure).svg)

    def test_wrong_names_are_refused_with_those_there_are(self):
        with self.assertRaisesRegex(ts.QueryError, "limits/roofline"):
            sample("mnist_pipeline").plot("limits/roof")
        with self.assertRaises(ts.QueryError):
            sample("mnist_pipeline").plot("nothing")
        with self.assertRaises(ValueError):
            sample("mnist_pipeline").plot("limits", theme="blue")


if __name__ == "__main__":
    unittest.main()
