"""Runs code of public guides and tutorials for IPUs by the launcher, as users would paste it.

What stands before and after a block is what the text leaves to the reader: data, which are random
here, and the call that trains.
"""

import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
    raise unittest.SkipTest("torch and onnxscript are not installed: guides are not tested")

import tilescope as ts
from tilescope.poptorch import _dataloader, _script


class GuideTest(unittest.TestCase):
    """Runs scripts, and reads the reports that they leave."""

    def run_script(self, *parts: str) -> dict:
        """Runs the parts as one script; returns its reports by the name of their directory."""
        with contextlib.ExitStack() as stack:
            scratch = tempfile.TemporaryDirectory()
            self.addCleanup(scratch.cleanup)
            directory = pathlib.Path(scratch.name)
            script = directory / "script.py"
            script.write_text("\n".join(textwrap.dedent(part) for part in parts))
            reports = directory / "reports"
            options = f'{{"autoReport.all": "true", "autoReport.directory": "{reports}"}}'
            patch = unittest.mock.patch
            stack.enter_context(patch.dict(os.environ, {"POPLAR_ENGINE_OPTIONS": options}))
            stack.enter_context(patch.object(sys, "argv", []))
            stack.enter_context(patch.object(sys, "path", list(sys.path)))
            # Without processes that load: torch waits for seconds until they have ended.
            stack.enter_context(patch.object(_dataloader, "_cores", lambda: 0))
            stack.callback(os.chdir, os.getcwd())
            os.chdir(directory)
            _script.run([str(script)])
        found = {path.parent.name: ts.open(path) for path in directory.rglob("profile.pop")}
        self.assertTrue(found, "the script leaves no report")
        self.directory = directory
        return found

    def assert_spec(self, report, *lines: str) -> None:
        """The report was made with these lines of a spec."""
        for line in lines:
            self.assertIn(line, report.spec)
