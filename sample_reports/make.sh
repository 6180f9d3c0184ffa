#!/usr/bin/env bash
# Rewrites the sample reports: bundled specs, simulated.
set -euo pipefail
cd "$(dirname "$0")/.."

tilescope() { cargo run --quiet --release --locked --no-default-features -- "$@"; }

tilescope simulate matmul_chain -o sample_reports/matmul_chain
tilescope simulate mnist_pipeline --set options.device_iterations=1 -o sample_reports/mnist_pipeline
tilescope simulate too_large -o sample_reports/too_large
du -ch sample_reports/*/profile.pop
