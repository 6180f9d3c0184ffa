"""Tests of the sdist: python -m unittest discover packaging"""

from __future__ import annotations

import json
import re
import subprocess
import unittest
from fnmatch import fnmatch
from os.path import normpath
from pathlib import Path, PurePosixPath

from build_backend import NOT_PACKED, ROOT

INCLUDED = re.compile(r'include_(?:str|bytes)?!\(\s*(concat!\([^)]*\)|"[^"]*")')


def packed() -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    return {name for name in names if name and not name.startswith(NOT_PACKED)}


def pattern(argument: str) -> str:
    """The path in a macro; what it takes from its own arguments may be anything."""
    if argument.startswith('"'):
        return argument.strip('"')
    parts = argument[len("concat!(") : -1].split(",")
    return "".join(part.strip().strip('"') if '"' in part else "*" for part in parts)


class Sdist(unittest.TestCase):
    def test_files_that_sources_include_are_packed(self):
        names = packed()
        seen = 0
        for source in sorted(name for name in names if name.endswith(".rs")):
            text = (ROOT / source).read_text(encoding="utf-8")
            for match in INCLUDED.finditer(text):
                folder = PurePosixPath(source).parent
                path = normpath(folder / pattern(match[1]))
                self.assertTrue(any(fnmatch(name, path) for name in names), f"{source}: {path}")
                seen += 1
        self.assertGreater(seen, 20)

    def test_members_of_the_workspace_are_packed(self):
        names = packed()
        command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        for package in json.loads(said)["packages"]:
            self.assertIn(Path(package["manifest_path"]).relative_to(ROOT).as_posix(), names)
        for path in ("Cargo.toml", "Cargo.lock", "python/Cargo.toml", "src/main.rs"):
            self.assertIn(path, names)


if __name__ == "__main__":
    unittest.main()
