#!/usr/bin/env bash
# Builds the Python wheel: the module, the command line and the desktop app in one file. Prints its
# path last.
#
#   packaging/wheel.sh [PROFILE]        dist (default), release or dev
#
# TILESCOPE_EXECUTABLE: a program that was built before, to be packed as it is.
# TILESCOPE_GLIBC: the oldest glibc that program and module start with, as in 2.28; without it, that
# of this machine. The tag of the wheel says what both need.
# MATURIN, PYTHON: see tools.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. packaging/tools.sh

program=$("$python" packaging/build_backend.py "$profile")
build() {
    rm -rf "$work/wheels"
    "$maturin" build --locked --profile "$profile" --out "$work/wheels" "$@" >&2
}
if [ -n "${TILESCOPE_GLIBC:-}" ]; then
    build --zig --target "$(uname -m)-unknown-linux-gnu" --compatibility "manylinux_${TILESCOPE_GLIBC/./_}"
else
    build
    # maturin chose the tag by the module alone.
    if ! "$python" packaging/glibc.py --check "$work"/wheels/*.whl 2>/dev/null; then
        needed=$("$python" packaging/glibc.py "$program")
        build --compatibility "manylinux_${needed/./_}"
    fi
fi
"$python" packaging/glibc.py --check "$work"/wheels/*.whl
target=$("$python" packaging/build_backend.py --target-directory)
mkdir -p "$target/packages"
cp "$work"/wheels/*.whl "$target/packages/"
echo "$target/packages/$(basename "$work"/wheels/*.whl)"
