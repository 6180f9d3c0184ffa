"""`python -m tilescope`: the command line."""

from ._cli import main

main()
