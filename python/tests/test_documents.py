"""The examples of docs/python.md and of the notebook, run as they stand."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import tempfile
import unittest
import warnings
from pathlib import Path

import tilescope as ts

from .support import REPOSITORY

NOTEBOOKS = REPOSITORY / "examples"


def missing(code: str) -> list[str]:
    """Libraries that an example says it needs, and that are not installed."""
    named = re.findall(r"# needs ([\w, ]+)", code)
    words = [word for line in named for word in re.split(r", | and ", line)]
    return [word for word in words if word != "pictures" and importlib.util.find_spec(word) is None]


class Documents(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tilescope-tests-")
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        Path(scratch.name, "sample_reports").symlink_to(REPOSITORY / "sample_reports")
        os.chdir(scratch.name)
        os.mkdir("out")

    def run_examples(self, title: str, examples: list[str]) -> None:
        names: dict = {}
        for number, code in enumerate(examples):
            with self.subTest(f"{title}, example {number + 1}"):
                absent = missing(code)
                if absent:
                    self.skipTest(f"not installed: {', '.join(absent)}")
                try:
                    exec(compile(code, f"{title}, example {number + 1}", "exec"), names)
                except ts.SpecError as error:
                    if "gui" not in str(error):
                        raise
                    self.skipTest("the program was built without pictures")

    def test_examples_of_the_page_run(self):
        text = (REPOSITORY / "docs" / "python.md").read_text()
        examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(examples), 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.run_examples("docs/python.md", examples)

    def test_notebooks_run(self):
        found = sorted(NOTEBOOKS.glob("*.ipynb"))
        self.assertTrue(found)
        for path in found:
            cells = json.loads(path.read_text())["cells"]
            code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            self.run_examples(path.name, code)


if __name__ == "__main__":
    unittest.main()
