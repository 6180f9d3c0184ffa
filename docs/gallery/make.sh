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
    execution-trace | insights | limits | operations | summary) report=bert ;;
    memory | tile-mapping) report=resnet ;;
    *) report=mnist ;;
    esac
    for theme in light dark; do
        "$program" export "$work/$report" --view "$view" --theme "$theme" --size 1280x800 -o "$work/picture.png" >/dev/null
        convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
            -define png:compression-level=9 "PNG8:docs/gallery/$view-$theme.png"
    done
done
# The picture of the README.
"$program" export "$work/bert" --view execution-trace --theme light --size 1600x900 -o "$work/picture.png" >/dev/null
convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
    -define png:compression-level=9 "PNG8:docs/execution-trace.png"
# What a run waits for: the critical path lit, and the chain of a wait.
place='tilescope:?view=execution-trace&select.cycles={"start":620000,"end":840000}&path_lit=true'
wait='&tab=details&select.step={"ipu":2,"sub_lane":0,"position":0,"step":1383}'
for picture in critical-path why-chain; do
    case $picture in
    critical-path) at="$place&tab=path" ;;
    why-chain) at="$place$wait" ;;
    esac
    "$program" export "$work/mnist" --view execution-trace --at "$at" --theme light --size 1280x800 -o "$work/picture.png" >/dev/null
    convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
        -define png:compression-level=9 "PNG8:docs/gallery/$picture.png"
done
# Sweeps and searches.
small() {
    convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
        -define png:compression-level=9 "PNG8:docs/gallery/$1.png"
}
"$program" sweep io_overlap --vary model.batch_size=16..256:x2 --vary options.num_io_tiles=32,64 \
    --vary options.overlap_io=none,loops --plot "$work/picture.png" >/dev/null
small sweep
simulate mnist_pipeline proven
"$program" insights "$work/proven" --prove >/dev/null
"$program" export "$work/proven" --view insights --theme light --size 1280x800 -o "$work/picture.png" >/dev/null
small proven-insights
"$program" tune mnist_pipeline --budget 60 --free model.batch_size --plot "$work/picture.png" >/dev/null
small tune

# An exchange: what all of them take, and what decides one of them.
for tab in cycles details; do
    at="tilescope:?view=exchange-code&tab=$tab&show=\"floor_plans\"&select.program=258"
    "$program" export "$work/mnist" --view exchange-code --at "$at" --theme light --size 1280x800 -o "$work/picture.png" >/dev/null
    convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
        -define png:compression-level=9 "PNG8:docs/gallery/exchange-$tab.png"
done
# What lies where in a tile's memory, what links carry, what tiles do at a cycle.
drawn() {
    "$program" export "$work/$1" --view "$3" --theme light --size 1280x800 \
        --at "tilescope:?view=$3$4" -o "$work/picture.png" >/dev/null
    small "$2"
}
drawn bert memory-by-address liveness '&show=addresses&tab=free'
drawn mnist links execution-trace '&prefs.links=true'
drawn mnist tiles execution-trace '&tab=tiles&select.step={"ipu":2,"sub_lane":0,"position":300,"step":1400}'
# Schedules: one trace each.
perceptron() {
    simulate tests/data/specs/perceptron.toml "$1" --set model.width=1024 "${@:2}"
}
state_off_chip="options.location.optimizer_state.on_chip=false"
perceptron phases --set options.execution=phased --set options.gradient_accumulation=1 \
    --set options.sync_pattern=replica_and_ladder --set model.batch_size=256
perceptron serial-updates --set model.optimizer=adam --set "$state_off_chip"
perceptron overlapped-updates --set model.optimizer=adam --set "$state_off_chip" \
    --set options.accumulate_outer_schedule=overlap_memory_optimized
perceptron merged-collectives --set options.replication_factor=4 --set options.merge_collectives=true
perceptron annotated-stages --set 'options.stages=["L0","L1",["L1/relu","L2"],"L3"]'
simulate io_overlap overlapped-io
# Four instances of a replica each, of which two are on slower hosts.
simulate mnist_pipeline slower-replicas --set options.device_iterations=1 \
    --set options.replication_factor=4 --set options.num_instances=4 \
    --set options.host.slower_instances=2 --set options.host.seconds_per_micro_batch=40e-6 \
    --set options.sync_replicas_independently=true
simulate data_loading rows --set model.image_size=128 --set target.ipus=4 \
    --set options.domain_sharding=rows --set options.device_iterations=1 \
    --set options.host.loader=synthetic --set options.host.framework=plain \
    --set options.host.seconds_per_call=0
# REPORT, PICTURE, HEIGHT, and what is shown of it.
schedule() {
    "$program" export "$work/$1" --view execution-trace --theme light --size "1280x$3" \
        --at "tilescope:?view=execution-trace$4" -o "$work/picture.png" >/dev/null
    convert "$work/picture.png" +dither -colors 256 -strip -define png:compression-filter=0 \
        -define png:compression-level=9 "PNG8:docs/gallery/schedule-$2.png"
}
for name in phases serial-updates overlapped-updates merged-collectives annotated-stages overlapped-io; do
    schedule $name $name 700 ""
done
schedule slower-replicas slower-replicas 1000 '&prefs.replicas=true'
schedule rows rows 700 ""
schedule rows halos 700 '&axis={"origin":30000,"fraction":0,"scale":50}'
awk '/^#/ { print; next } { print $1, $2, $2 }' docs/gallery/versions.txt >"$work/versions.txt"
cp "$work/versions.txt" docs/gallery/versions.txt
du -ch docs/gallery/*.png | tail -1
