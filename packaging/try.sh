#!/usr/bin/env bash
# Installs a .deb or .rpm into an empty directory, with nothing beside it but the libraries it is
# linked with, and tries it there: packaging/try.sh PACKAGE. Needs root, for chroot.
set -euo pipefail
package=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/tmp"
case $package in
    *.deb)
        mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
        touch "$root"/var/lib/dpkg/{status,available}
        dpkg --root="$root" --force-depends -i "$package" >/dev/null 2>&1
        ;;
    *.rpm) rpm --root "$root" --nodeps -i "$package" 2>/dev/null ;;
    *) echo "neither a .deb nor a .rpm: $package" >&2; exit 2 ;;
esac
ldd "$root/usr/bin/tilescope" | grep -o '/[^ ]*' | while read -r library; do
    install -D "$library" "$root$library"
done
inside() { chroot "$root" /usr/bin/tilescope "$@"; }
inside --version
inside simulate matmul_chain -o /tmp/out
# As the thumbnailer does.
inside export /tmp/out --view summary --format png --size 256x256 -o /tmp/thumbnail.png
for file in applications/tilescope.desktop mime/packages/tilescope.xml \
    thumbnailers/tilescope.thumbnailer metainfo/tilescope.metainfo.xml \
    icons/hicolor/512x512/apps/tilescope.png icons/hicolor/scalable/apps/tilescope.svg; do
    test -s "$root/usr/share/$file"
done
if [ "${package%.deb}" != "$package" ]; then
    dpkg --root="$root" -r tilescope >/dev/null 2>&1
    test ! -e "$root/usr/bin/tilescope"
fi
echo "tried: $package"
