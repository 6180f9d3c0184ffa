#!/usr/bin/env bash
# Builds the package for Debian and Ubuntu, with dpkg-deb. Prints its path last.
#
# TILESCOPE_EXECUTABLE: a program that was built before, to be packed as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/linux/executable.sh
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/tilescope
packaging/linux/stage.sh "$root" "$executable"
strip --strip-unneeded "$root/usr/bin/tilescope"

docs=$root/usr/share/doc/tilescope
mkdir -p "$docs"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: tilescope"
    echo
    echo "Files: *"
    echo "Copyright: the tilescope contributors"
    echo "License: MIT or Apache-2.0"
    echo " On Debian systems, the text of the Apache License, version 2.0, is in"
    echo " /usr/share/common-licenses/Apache-2.0. The text of the MIT license follows."
    echo " ."
    sed 's/^$/./; s/^/ /' LICENSE-MIT
    echo
    echo "Files: fonts"
    echo "Copyright: The Inter Project Authors"
    echo "License: OFL-1.1"
    sed 's/\r$//; s/^$/./; s/^/ /' assets/fonts/OFL.txt
} >"$docs/copyright"
gzip -9nc CHANGELOG.md >"$docs/changelog.gz"
maintainer="${DEBFULLNAME:-tilescope packagers} <${DEBEMAIL:-packagers@tilescope.invalid}>"
{
    printf 'tilescope (%s-1) unstable; urgency=medium\n\n' "$version"
    printf '  * Version %s; what changed is in changelog.gz.\n\n' "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(git log -1 --format=%cD)"
} | gzip -9nc >"$docs/changelog.Debian.gz"

# What it is linked with; the libraries of the display are opened by name, and only by the window.
mkdir "$work/debian"
printf 'Source: tilescope\n\nPackage: tilescope\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/tilescope" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: tilescope
Version: $version-1
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -ks --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: libgl1, libegl1, libgl1-mesa-dri, libx11-xcb1, libxcursor1, libxi6, libxkbcommon-x11-0, libwayland-client0
Section: devel
Priority: optional
Description: profiler and simulator for programs on Graphcore IPUs
 tilescope answers two questions about a program for Graphcore IPUs: why is it
 slow or too large, and what would happen if it were changed? It reads the
 reports that Poplar writes, and simulates models at tile level into reports of
 the same layout.
CONTROL
(cd "$root" && find usr -type f -printf '%P\n' | sed 's|^|usr/|' | LC_ALL=C sort |
    xargs md5sum >DEBIAN/md5sums)
chmod -R go-w "$root"
mkdir -p "$target/packages"
package=$target/packages/tilescope_$version-1_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >&2
echo "$package"
