"""``python -m tilescope.poptorch script.py arguments``."""

import sys

from ._script import run

USAGE = "usage: python -m tilescope.poptorch SCRIPT [ARGUMENTS]   (or: -m MODULE [ARGUMENTS])"


def main() -> int:
    """Runs the script named on the command line."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments == ["-m"]:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        run(arguments)
    except FileNotFoundError as error:
        if error.filename != arguments[0]:
            raise
        print(f"{arguments[0]}: no such script", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
