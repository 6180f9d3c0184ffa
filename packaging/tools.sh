# Sourced by scripts that build with maturin or for an older glibc: puts what they need, and is not
# there, into an environment in $work that is thrown away, and sets $maturin.
#
# MATURIN: a maturin that is there already. PYTHON: the interpreter to install with.
# TILESCOPE_GLIBC: the oldest glibc that is to do, as in 2.28. Built with zig, which links against any.
python=${PYTHON:-python3}
maturin=${MATURIN:-}
wanted=()
[ -n "$maturin" ] || wanted+=('maturin>=1.9.4,<2')
if [ -n "${TILESCOPE_GLIBC:-}" ] && ! command -v cargo-zigbuild >/dev/null; then
    wanted+=(ziglang cargo-zigbuild)
fi
if [ ${#wanted[@]} -gt 0 ]; then
    "$python" -m venv "$work/tools"
    "$work/tools/bin/pip" install --quiet "${wanted[@]}" >&2
    python=$work/tools/bin/python
    export PATH=$work/tools/bin:$PATH
    maturin=${maturin:-$work/tools/bin/maturin}
fi
