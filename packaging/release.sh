#!/usr/bin/env bash
# Builds what a release for Linux consists of: the wheel, the program for machines with IPUs, and the
# sdist. Wheel and program start with glibc 2.28, that of RHEL 8, and so on Ubuntu 20.04 (2.31), where
# Poplar SDKs are. Prints the paths last.
#
#   packaging/release.sh [PROFILE]      dist (default), release or dev
set -euo pipefail
cd "$(dirname "$0")/.."
export TILESCOPE_GLIBC=${TILESCOPE_GLIBC:-2.28}
wheel=$(packaging/wheel.sh "$@" | tail -n 1)
host=$(packaging/host.sh "$@" | tail -n 1)
sdist=$(packaging/sdist.sh | tail -n 1)
printf '%s\n' "$wheel" "$host" "$sdist"
