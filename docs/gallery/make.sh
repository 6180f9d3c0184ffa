#!/usr/bin/env bash
# Redraws the gallery: every view in both themes, from simulated reports.
# Needs ImageMagick's `convert`, which makes the pictures small: at most 256 colours each.
#
#   docs/gallery/make.sh [PATH OF TILESCOPE]     default: built here, in release
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${1:-}
if [ -z "$program" ]; then
    cargo build --quiet --release --locked
    program=target/release/tilescope
fi
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

simulate() { "$program" simulate "$1" -o "$work/$2" "${@:3}" >/dev/null; }
simulate mnist_pipeline mnist --set options.device_iterations=1
simulate mnist_pipeline replicas --set options.device_iterations=1 --set options.replication_factor=4
simulate bert_large_pod16 bert
simulate resnet50_pod16 resnet
simulate too_large too_large

for view in $("$program" export --list-views); do
    # The report that shows most in this view.
    case $view in
    exchange-code) report=replicas ;;
    liveness) report=too_large ;;
    execution-trace | insights | operations | summary) report=bert ;;
    memory | tile-mapping) report=resnet ;;
    *) report=mnist ;;
    esac
    for theme in light dark; do
        "$program" export "$work/$report" --view "$view" --theme "$theme" --size 1280x800 -o "$work/picture.png" >/dev/null
        convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
            -define png:compression-level=9 "PNG8:docs/gallery/$view-$theme.png"
    done
done
du -ch docs/gallery/*.png | tail -1
