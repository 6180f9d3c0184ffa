"""The glibc that programs and libraries need, and whether a wheel says so.

    python packaging/glibc.py FILE…              the oldest glibc with which all of them start: 2.28
    python packaging/glibc.py --check WHEEL      fails where its tag promises an older one

pip believes the tag of a wheel. maturin looks at the module only when it chooses one; the program
that lies beside it may need a newer glibc than the module does.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from pathlib import Path

# A section with the versions of libraries that a file needs (SHT_GNU_verneed).
NEEDED_VERSIONS = 0x6FFF_FFFE

# Markers that are no versions, and the first glibc that has them.
MARKERS = {"GLIBC_ABI_DT_RELR": (2, 36)}

Version = tuple[int, int]


def needed(content: bytes) -> Version | None:
    """The oldest glibc that an ELF file starts with; None where it is none, or needs no glibc."""
    if content[:4] != b"\x7fELF":
        return None
    is_wide, order = content[4] == 2, "<" if content[5] == 1 else ">"

    def read(layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(order + layout, content, offset)

    # Of the header: where sections are described, how long a description is, how many there are.
    (table,) = read("Q", 0x28) if is_wide else read("I", 0x20)
    size, count = read("HH", 0x3A if is_wide else 0x2E)
    sections = []
    for number in range(count):
        at = table + number * size
        if is_wide:
            _, kind, _, _, offset, _, link, entries = read("IIQQQQII", at)
        else:
            _, kind, _, _, offset, _, link, entries = read("8I", at)
        sections.append((kind, offset, link, entries))

    found = []
    for kind, at, link, entries in sections:
        if kind != NEEDED_VERSIONS:
            continue
        names = sections[link][1]
        for _ in range(entries):
            _, versions, _, first, following = read("HHIII", at)
            own = at + first
            for _ in range(versions):
                _, _, _, name, next_one = read("IHHII", own)
                start = names + name
                found.append(content[start : content.index(b"\0", start)].decode())
                own += next_one
            at += following
    return max((version for version in map(version_of, found) if version), default=None)


def version_of(symbol: str) -> Version | None:
    """The glibc of a name such as GLIBC_2.28 or GLIBC_2.2.5."""
    if symbol in MARKERS:
        return MARKERS[symbol]
    match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", symbol)
    return (int(match[1]), int(match[2])) if match else None


def promised(wheel: Path) -> Version | None:
    """The glibc that the tag of a wheel promises to do with; None where it promises nothing of it."""
    found = [(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", wheel.name)]
    return min(found, default=None)


def needed_by_parts(wheel: Path) -> dict[str, Version]:
    """The glibc that each program and library in a wheel needs."""
    found = {}
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            version = needed(packed.read(name))
            if version:
                found[name] = version
    return found


def text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def check(wheel: Path) -> str | None:
    """What is wrong with the tag of a wheel."""
    tag = promised(wheel)
    newest = max(needed_by_parts(wheel).items(), key=lambda part: part[1], default=None)
    if tag is None or newest is None or newest[1] <= tag:
        return None
    return f"{wheel.name} promises glibc {text(tag)}, and {newest[0]} needs {text(newest[1])}"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--check"]:
        problems = [problem for problem in map(check, map(Path, arguments[1:])) if problem]
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1 if problems else 0
    found = []
    for name in map(Path, arguments):
        if zipfile.is_zipfile(name):
            found += needed_by_parts(name).values()
        else:
            found.append(needed(name.read_bytes()))
    newest = max((version for version in found if version), default=None)
    if newest:
        print(text(newest))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
