#!/usr/bin/env bash
# Lays out what a Linux package holds: packaging/linux/stage.sh DIRECTORY EXECUTABLE
set -euo pipefail
root=$1
executable=$(realpath "$2")
cd "$(dirname "$0")"
share=$root/usr/share
install -Dm755 "$executable" "$root/usr/bin/tilescope"
install -Dm644 tilescope.desktop "$share/applications/tilescope.desktop"
install -Dm644 tilescope-mime.xml "$share/mime/packages/tilescope.xml"
install -Dm644 tilescope.thumbnailer "$share/thumbnailers/tilescope.thumbnailer"
install -Dm644 tilescope.metainfo.xml "$share/metainfo/tilescope.metainfo.xml"
for size in 16 24 32 48 64 128 256 512; do
    install -Dm644 "icons/tilescope-$size.png" \
        "$share/icons/hicolor/${size}x$size/apps/tilescope.png"
done
install -Dm644 icons/tilescope.svg "$share/icons/hicolor/scalable/apps/tilescope.svg"
licences=$share/doc/tilescope
install -dm755 "$licences"
(cd ../.. && cargo xtask notices) >"$licences/THIRD-PARTY-NOTICES"
gzip -9n "$licences/THIRD-PARTY-NOTICES"
install -dm755 "$share/man/man1"
"$executable" man -o "$share/man/man1" >/dev/null
gzip -9n "$share"/man/man1/*.1
chmod 644 "$share"/man/man1/*.gz
