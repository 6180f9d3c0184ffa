# Sourced by the scripts of packages, from the root of the repository: sets `version`, `target` and
# `executable`, which is TILESCOPE_EXECUTABLE or built here.
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
target=$(cargo metadata --format-version 1 --no-deps --locked |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
executable=${TILESCOPE_EXECUTABLE:-}
if [ -z "$executable" ]; then
    cargo build --locked --profile dist -p tilescope >&2
    executable=$target/dist/tilescope
fi
