"""The command `tilescope`: the program itself."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    from ._program import SimulationError, executable

    try:
        words = [executable(), *sys.argv[1:]]
    except SimulationError as error:
        sys.exit(f"error: {error}")
    if os.name == "posix":
        sys.stdout.flush()
        os.execv(words[0], words)
    import subprocess

    sys.exit(subprocess.run(words, check=False).returncode)
