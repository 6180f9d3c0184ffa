"""Tests of the templates for jobs: python -m unittest discover packaging

They run the scripts as they stand in the templates, with the program that TILESCOPE_EXECUTABLE names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as tree
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
SAMPLES = PACKAGING.parent / "sample_reports"
EXECUTABLE = os.environ.get("TILESCOPE_EXECUTABLE") or shutil.which("tilescope")

TEMPLATES = {
    "bash": (PACKAGING / "ci" / "github" / "action.yml", r"\n      run: \|\n((?:        .*\n|\n)+)"),
    "sh": (PACKAGING / "ci" / "gitlab" / "tilescope.yml", r"\n    - \|\n((?:      .*\n|\n)+)"),
}


def script(shell: str) -> str:
    """The script of a template."""
    path, pattern = TEMPLATES[shell]
    return textwrap.dedent(re.search(pattern, path.read_text(encoding="utf-8"))[1])


@unittest.skipUnless(EXECUTABLE and os.name == "posix", "there is no program to run, or no shell")
class Templates(unittest.TestCase):
    def run_job(self, shell: str, source: str, target: str, gates: str, directory: Path):
        """The end of a job, which works in a directory."""
        tools = directory / "tools"
        tools.mkdir()
        (tools / "tilescope").symlink_to(Path(EXECUTABLE).resolve())
        environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SOURCE": str(SAMPLES / source),
            "TARGET": str(SAMPLES / target),
            "GATES": gates,
            "PER": "run",
            "PACKAGE": "",
            "DIRECTORY": "out",
            "GITHUB_STEP_SUMMARY": str(directory / "summary.md"),
        }
        command = [shell, *(["-eo", "pipefail"] if shell == "bash" else ["-e"]), "-c", script(shell)]
        return subprocess.run(
            command, env=environment, cwd=directory, capture_output=True, text=True, check=False
        )

    def test_jobs_end_as_their_gates_say(self):
        cases = [
            ("matmul_chain", "cycles > +2%\n\nmax_tile > 600 MiB\n", 0, 2),
            ("mnist_pipeline", "cycles > +2%\nmemory > 1 GiB", 3, 2),
            ("nowhere", "cycles > +2%", None, 0),
            ("matmul_chain", "cycels > +2%", 2, 0),
        ]
        for shell in TEMPLATES:
            for target, gates, code, judged in cases:
                with self.subTest(shell=shell, target=target), tempfile.TemporaryDirectory() as place:
                    directory = Path(place)
                    done = self.run_job(shell, "matmul_chain", target, gates, directory)
                    if code is None:
                        self.assertIn(done.returncode, (1, 2), done.stderr)
                    else:
                        self.assertEqual(done.returncode, code, done.stderr)
                    if judged:
                        junit = tree.parse(directory / "out" / "gates.xml")
                        self.assertEqual(len(list(junit.iter("testcase"))), judged)
                        page = (directory / "out" / "changes.html").read_text(encoding="utf-8")
                        self.assertIn("</html>", page)
                        shown = (directory / "out" / "comparison.md").read_text(encoding="utf-8")
                        self.assertTrue(shown.startswith("**"), shown)
                        summary = directory / "summary.md"
                        told = summary.read_text(encoding="utf-8") if shell == "bash" else done.stdout
                        self.assertIn(shown, told)


if __name__ == "__main__":
    unittest.main()
