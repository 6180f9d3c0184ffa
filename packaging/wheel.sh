#!/usr/bin/env bash
# Builds the Python wheel: the module, the command line and the desktop app in one file. Prints its
# path last.
#
#   packaging/wheel.sh [PROFILE]        dist (default), release or dev
#
# TILESCOPE_EXECUTABLE: a program that was built before, to be packed as it is.
# MATURIN: a maturin that is there already; else it is installed into an environment of its own,
# which is thrown away. PYTHON: the interpreter to do that with.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$(cargo metadata --format-version 1 --no-deps --locked |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')

maturin=${MATURIN:-}
if [ -z "$maturin" ]; then
    "${PYTHON:-python3}" -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet 'maturin>=1.9.4,<2' >&2
    maturin=$work/venv/bin/maturin
fi
executable=${TILESCOPE_EXECUTABLE:-}
if [ -z "$executable" ]; then
    cargo build --locked --profile "$profile" -p tilescope >&2
    executable=$target/${profile/#dev/debug}/tilescope
fi
mkdir -p python/tilescope/bin
install -m 755 "$executable" python/tilescope/bin/tilescope
# Line tables are two thirds of a build that is not for packages.
strip python/tilescope/bin/tilescope
# The licence files that pyproject.toml names.
cp LICENSE-MIT LICENSE-APACHE python/
cp assets/fonts/OFL.txt python/LICENSE-Inter-OFL
cargo xtask notices >python/THIRD-PARTY-NOTICES
"$maturin" build --locked --profile "$profile" --manifest-path python/Cargo.toml \
    --out "$work/wheels" >&2
mkdir -p "$target/packages"
cp "$work"/wheels/*.whl "$target/packages/"
echo "$target/packages/$(basename "$work"/wheels/*.whl)"
