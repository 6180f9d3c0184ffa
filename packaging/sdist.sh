#!/usr/bin/env bash
# Packs the sources of module and program as an sdist, from a checkout. Prints its path last.
#
# PYTHON: see tools.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The backend needs maturin as a module of its interpreter.
MATURIN=
. packaging/tools.sh
target=$("$python" packaging/build_backend.py --target-directory)
mkdir -p "$target/packages"
"$python" packaging/build_backend.py --sdist "$target/packages"
