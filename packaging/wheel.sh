#!/usr/bin/env bash
# Builds the Python wheel: the module, the command line and the desktop app in one file. Prints its
# path last.
#
#   packaging/wheel.sh [PROFILE]        dist (default), release or dev
#
# TILESCOPE_EXECUTABLE: a program that was built before, to be put into the wheel as it is.
# TILESCOPE_VENV: an environment that has maturin; else one is made and thrown away.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
directory=$profile
[ "$profile" = dev ] && directory=debug

executable=${TILESCOPE_EXECUTABLE:-}
if [ -z "$executable" ]; then
    cargo build --locked --profile "$profile" -p tilescope
    executable=$target/$directory/tilescope
fi
venv=${TILESCOPE_VENV:-}
if [ -z "$venv" ]; then
    venv=$(mktemp -d)
    trap 'rm -rf "$venv"' EXIT
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'maturin>=1.9.4,<2'
fi
mkdir -p python/tilescope/bin
install -m 755 "$executable" python/tilescope/bin/tilescope
# Line tables are two thirds of a development build.
[ "$profile" = dist ] || strip python/tilescope/bin/tilescope
"$venv/bin/maturin" build --locked --profile "$profile" --manifest-path python/Cargo.toml \
    --out "$target/wheels" >&2
ls -t "$target"/wheels/*.whl | head -n 1
