#!/usr/bin/env bash
# What a desktop says of the files that packages put on it: needs desktop-file-utils, appstream,
# shared-mime-info, xdg-utils and gio. Skips what is not installed, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
has() {
    for program; do
        command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; return 1; }
    done
}

if has desktop-file-validate; then
    desktop-file-validate packaging/linux/tilescope.desktop
    echo "desktop file: valid"
fi
if has appstreamcli; then
    # An id in reverse DNS would claim a domain that nobody here owns.
    appstreamcli validate --no-net --override=cid-desktopapp-is-not-rdns=info \
        packaging/linux/tilescope.metainfo.xml
fi
if has update-mime-database xdg-mime gio; then
    # xdg-mime asks gio on this desktop; on none it would ask `file`, which knows no types of ours.
    export XDG_CURRENT_DESKTOP=GNOME HOME=$work XDG_DATA_HOME=$work/data
    mkdir -p "$work/data/mime/packages" "$work/foreign"
    cp packaging/linux/tilescope-mime.xml "$work/data/mime/packages/tilescope.xml"
    update-mime-database "$work/data/mime"
    # Known by what is in it, whatever its name; a report of another tool by its name.
    cp sample_reports/matmul_chain/profile.pop "$work/any-name"
    cp sample_reports/matmul_chain/profile.pop "$work/run.pop"
    printf '\0\0\0\0' | dd of="$work/run.pop" bs=1 seek=68 conv=notrunc status=none
    cp "$work/run.pop" "$work/foreign/profile.pop"
    cp "$work/run.pop" "$work/other.db"
    for name in any-name run.pop foreign/profile.pop; do
        found=$(xdg-mime query filetype "$work/$name")
        echo "$name: $found"
        [ "$found" = application/x-tilescope-report ]
    done
    [ "$(xdg-mime query filetype "$work/other.db")" != application/x-tilescope-report ]
    cp tests/data/onnx/guide_mnist.onnx "$work/model.onnx"
    found=$(xdg-mime query filetype "$work/model.onnx")
    echo "model.onnx: $found"
    [ "$found" = application/x-onnx ]
fi
