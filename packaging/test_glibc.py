"""Tests of glibc.py: python -m unittest discover packaging"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import glibc  # noqa: E402


def elf(*symbols: str, wide: bool = True) -> bytes:
    """An ELF file that needs versions of libc.so.6, and nothing else."""
    names = b"\0libc.so.6\0"
    needs = b""
    for number, symbol in enumerate(symbols):
        following = 0 if number == len(symbols) - 1 else 16
        needs += struct.pack("<IHHII", 0, 0, 0, len(names), following)
        names += symbol.encode() + b"\0"
    needs = struct.pack("<HHIII", 1, len(symbols), 1, 16, 0) + needs
    header = 0x40 if wide else 0x34
    table = header + len(names) + len(needs)
    sections = [(3, header, len(names), 0, 0), (glibc.NEEDED_VERSIONS, header + len(names), len(needs), 0, 1)]
    layout = "<IIQQQQIIQQ" if wide else "<10I"
    packed = b"".join(
        struct.pack(layout, 0, kind, 0, 0, offset, size, link, entries, 0, 0)
        for kind, offset, size, link, entries in sections
    )
    start = bytearray(header)
    start[:6] = b"\x7fELF" + bytes([2 if wide else 1, 1])
    struct.pack_into("<Q" if wide else "<I", start, 0x28 if wide else 0x20, table)
    struct.pack_into("<HH", start, 0x3A if wide else 0x2E, struct.calcsize(layout), len(sections))
    return bytes(start) + names + needs + packed


class Glibc(unittest.TestCase):
    def test_the_newest_version_counts(self):
        self.assertEqual(glibc.needed(elf("GLIBC_2.2.5", "GLIBC_2.28", "GLIBC_2.4")), (2, 28))
        self.assertEqual(glibc.needed(elf("GLIBC_2.9", "GLIBC_2.17", wide=False)), (2, 17))
        self.assertEqual(glibc.needed(elf("GLIBC_2.17", "GLIBC_ABI_DT_RELR")), (2, 36))
        self.assertIsNone(glibc.needed(elf("GCC_3.0", "GLIBC_PRIVATE")))
        self.assertIsNone(glibc.needed(b"#!/bin/sh\n"))

    @unittest.skipUnless(sys.platform == "linux" and shutil.which("objdump"), "there is no objdump")
    def test_real_programs_need_what_objdump_says(self):
        program = Path(sys.executable).resolve()
        said = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True)
        versions = filter(None, map(glibc.version_of, said.stdout.split()))
        self.assertEqual(glibc.needed(program.read_bytes()), max(versions))

    def test_wheels_may_not_promise_an_older_one(self):
        with tempfile.TemporaryDirectory() as scratch:
            for tag, is_wrong in (("2_34", True), ("2_35", False), ("2_17_x86_64.manylinux_2_40", True)):
                wheel = Path(scratch, f"tilescope-1.0-cp39-abi3-manylinux_{tag}_x86_64.whl")
                with zipfile.ZipFile(wheel, "w") as packed:
                    packed.writestr("tilescope/_tilescope.abi3.so", elf("GLIBC_2.34"))
                    packed.writestr("tilescope/bin/tilescope", elf("GLIBC_2.35"))
                    packed.writestr("tilescope/py.typed", b"")
                problem = glibc.check(wheel)
                self.assertEqual(problem is not None, is_wrong, tag)
                if problem:
                    self.assertIn("tilescope/bin/tilescope needs 2.35", problem)
            # A wheel that is for this machine only promises nothing.
            local = wheel.rename(Path(scratch, "tilescope-1.0-cp39-abi3-linux_x86_64.whl"))
            self.assertIsNone(glibc.check(local))


if __name__ == "__main__":
    unittest.main()
