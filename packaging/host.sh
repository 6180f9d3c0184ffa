#!/usr/bin/env bash
# Builds the program without the desktop app, for machines with IPUs: an archive with the program and
# its licences, that needs nothing but glibc. Prints its path last.
#
#   packaging/host.sh [PROFILE]         dist (default), release or dev
#
# TILESCOPE_GLIBC: the oldest glibc to start with; 2.28 unless it is set. PYTHON: see tools.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
export TILESCOPE_GLIBC=${TILESCOPE_GLIBC:-2.28}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Nothing is built with it here.
MATURIN=none
. packaging/tools.sh

program=$("$python" packaging/build_backend.py "$profile" --no-default-features)
needed=$("$python" packaging/glibc.py "$program")
if [ "$(printf '%s\n' "$needed" "$TILESCOPE_GLIBC" | sort -V | tail -n 1)" != "$TILESCOPE_GLIBC" ]; then
    echo "error: $program needs glibc $needed, newer than $TILESCOPE_GLIBC" >&2
    exit 1
fi
version=$("$program" --version | cut -d' ' -f2)
name=tilescope-$version-linux-$(uname -m)
mkdir "$work/$name"
cp "$program" LICENSE-MIT LICENSE-APACHE python/THIRD-PARTY-NOTICES "$work/$name/"
target=$("$python" packaging/build_backend.py --target-directory)
mkdir -p "$target/packages"
tar -C "$work" --owner=0 --group=0 -czf "$target/packages/$name.tar.gz" "$name"
echo "$target/packages/$name.tar.gz"
