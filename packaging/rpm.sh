#!/usr/bin/env bash
# Builds the package for Fedora, openSUSE and others, with rpmbuild. Prints its path last.
#
# TILESCOPE_EXECUTABLE: a program that was built before, to be packed as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/linux/executable.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packaging/linux/stage.sh "$work/staged" "$executable"
strip --strip-unneeded "$work/staged/usr/bin/tilescope"
mkdir -p "$work/staged/usr/share/licenses/tilescope"
install -m644 LICENSE-MIT LICENSE-APACHE "$work/staged/usr/share/licenses/tilescope/"
install -m644 assets/fonts/OFL.txt "$work/staged/usr/share/licenses/tilescope/OFL.txt"

cat >"$work/tilescope.spec" <<SPEC
Name: tilescope
Version: $version
Release: 1
Summary: Profiler and simulator for programs on Graphcore IPUs
License: (MIT OR Apache-2.0) AND OFL-1.1
Recommends: libglvnd-glx libglvnd-egl libxkbcommon-x11 libwayland-client libXcursor libXi

%global debug_package %{nil}
%global __os_install_post %{nil}

%description
tilescope answers two questions about a program for Graphcore IPUs: why is it
slow or too large, and what would happen if it were changed? It reads the
reports that Poplar writes, and simulates models at tile level into reports of
the same layout.

%install
cp -a $work/staged/. %{buildroot}/

%files
/usr/bin/tilescope
/usr/share/applications/tilescope.desktop
/usr/share/doc/tilescope/THIRD-PARTY-NOTICES.gz
/usr/share/icons/hicolor/*/apps/tilescope.*
%license /usr/share/licenses/tilescope
/usr/share/man/man1/tilescope*.1.gz
/usr/share/metainfo/tilescope.metainfo.xml
/usr/share/mime/packages/tilescope.xml
/usr/share/thumbnailers/tilescope.thumbnailer
SPEC
rpmbuild -bb --quiet --define "_topdir $work/rpmbuild" --define "_build_id_links none" \
    --define "_binary_payload w6.xzdio" \
    "$work/tilescope.spec" >&2
mkdir -p "$target/packages"
package=$(find "$work/rpmbuild/RPMS" -name '*.rpm')
cp "$package" "$target/packages/"
echo "$target/packages/$(basename "$package")"
