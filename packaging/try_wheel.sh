#!/usr/bin/env bash
# Installs a wheel into an environment that is thrown away, and runs python/tests against it.
#
#   packaging/try_wheel.sh WHEEL [LIBRARY...]     libraries to install beside it: pandas, polars, …
#
# PYTHON: the interpreter, 3.9 or newer. Tests of libraries that are not installed are skipped, and
# say so.
set -euo pipefail
wheel=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-index "$wheel"
[ $# = 0 ] || "$work/venv/bin/pip" install --quiet "$@"
# The tests alone: beside the sources Python would import those.
mkdir -p "$work/python"
ln -s "$PWD/python/tests" "$work/python/tests"
cd "$work/python"
env -u TILESCOPE_EXECUTABLE PYTHONDONTWRITEBYTECODE=1 "$work/venv/bin/python" -W error::ResourceWarning \
    -m unittest discover --verbose -s tests -t .
