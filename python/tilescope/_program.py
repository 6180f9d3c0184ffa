"""Runs the program of this package as a child process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path


class SpecError(ValueError):
    """The program refused a spec; the message is its own."""

    #: Dotted path of the key, such as `options.stages`; empty for the whole spec.
    key: str
    #: The file, and its line counted from 1; None if the value is not from a file.
    file: str | None
    line: int | None
    #: The problem, and the expected value.
    problem: str
    #: The nearest valid name.
    nearest: str | None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        place = re.match(r"(?:(?P<file>.+?):(?P<line>\d+): |--set: )?", message)
        rest = message[place.end() :] if place else message
        self.file = place["file"] if place else None
        self.line = int(place["line"]) if place and place["line"] else None
        key = re.match(r"([A-Za-z_][\w-]*(?:\.[\w<>*-]+)*): ", rest)
        self.key = key[1] if key else ""
        rest = rest[key.end() :] if key else rest
        self.problem, _, hint = rest.partition("; did you mean ")
        self.nearest = hint.removesuffix("?").strip("\"'`") or None

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (str(self),)


class SimulationError(RuntimeError):
    """A simulation, or another command of the program, failed."""


def executable() -> str:
    """Path of the program: `TILESCOPE_EXECUTABLE`, the program in this package, or one in
    `PATH`."""
    chosen = os.environ.get("TILESCOPE_EXECUTABLE")
    if chosen:
        return chosen
    name = "tilescope.exe" if os.name == "nt" else "tilescope"
    bundled = Path(__file__).with_name("bin") / name
    if bundled.is_file():
        return str(bundled)
    # The command of this package is a script that calls this function.
    own = Path(sys.executable).parent
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = os.pathsep.join(path for path in paths if not path or Path(path) != own)
    found = shutil.which("tilescope", path=others)
    if found is None:
        raise SimulationError(
            "cannot find the program tilescope: this package was built without it, and "
            "TILESCOPE_EXECUTABLE is not set"
        )
    return found


class Running:
    """A group of started programs that can be ended together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[str]] = []
        self._ended = False

    def add(self, child: subprocess.Popen[str]) -> None:
        with self._lock:
            self._children.append(child)
            if self._ended:
                child.kill()

    def kill(self) -> None:
        with self._lock:
            self._ended = True
            for child in self._children:
                child.kill()


def run(
    words: Sequence[str],
    progress: Callable[[int], None] | None = None,
    running: Running | None = None,
    codes: Sequence[int] = (0,),
) -> tuple[str, list[str]]:
    """Runs a command of the program. Returns its output and its warnings.

    `codes` are the exit codes that count as success. `progress` is called with the percentage. An
    interrupt kills the program.

    Raises `SpecError` for an invalid spec or command, and `SimulationError` for other failures.
    """
    environment = dict(os.environ)
    if progress is not None:
        environment["TILESCOPE_PROGRESS"] = "1"
    child = subprocess.Popen(
        [executable(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        encoding="utf-8",
        errors="replace",
    )
    if running is not None:
        running.add(child)
    printed: list[str] = []
    # A full pipe would block the program, so both are read at the same time.
    reader = threading.Thread(target=lambda: printed.append(child.stdout.read()), daemon=True)
    reader.start()
    said: list[str] = []
    try:
        for line in child.stderr:
            line = line.rstrip("\n")
            if progress is not None and line.startswith("progress "):
                progress(int(line.split()[1]))
            elif line:
                said.append(line)
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        reader.join()
        child.stdout.close()
        child.stderr.close()
    warnings = [line.removeprefix("warning: ") for line in said if line.startswith("warning: ")]
    answer = "".join(printed)
    if code == 0 or (code in codes and answer):
        return answer, warnings
    _fail(code, said)


def _fail(code: int, said: list[str]) -> None:
    words = "\n".join(line for line in said if not line.startswith("warning: "))
    words = words.removeprefix("error: ")
    if code < 0:
        problem = f"the simulation was stopped by signal {-code}"
        if code == -9:
            problem += ", perhaps because memory ran out"
        raise SimulationError(f"{problem}. {words}".rstrip())
    if code == 2:
        raise SpecError(words)
    raise SimulationError(words or f"tilescope ended with {code} and without a message")
