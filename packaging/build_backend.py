"""The build backend of the Python package: maturin, with the program built before the module.

    build_backend.py PROFILE [OPTION OF CARGO…]     builds the program and prints where it lies
    build_backend.py --sdist DIRECTORY              prints the path of an sdist
    build_backend.py --target-directory             prints where cargo builds

`pip install .` works from a checkout and from an sdist. An sdist holds what git knows, without the
tests, so that the program can be built from it.

TILESCOPE_EXECUTABLE: a program that was built before, to be packed as it is.
TILESCOPE_GLIBC: the oldest glibc that the program is to start with, as in 2.28; needs cargo-zigbuild.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "tilescope.exe" if os.name == "nt" else "tilescope"

# Directories that only tests and documents need.
NOT_PACKED = (".ci/", "docs/gallery/", "sample_reports/", "tests/", "python/tests/")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    import maturin

    _bring_notices()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    bring_program("release")
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    bring_program("release")
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    with tempfile.TemporaryDirectory() as scratch:
        info = prepare_metadata_for_build_wheel(scratch, config_settings)
        metadata = Path(scratch, info, "METADATA").read_bytes()
    release = info[: -len(".dist-info")]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    path = Path(sdist_directory, f"{release}.tar.gz")
    # Without times and owners: the same sources give the same bytes.
    with gzip.GzipFile(path, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as sdist:
        _add(sdist, f"{release}/PKG-INFO", metadata, 0o644)
        for name in names:
            file = ROOT / name
            if not name.startswith(NOT_PACKED) and file.is_file():
                mode = 0o755 if os.access(file, os.X_OK) else 0o644
                _add(sdist, f"{release}/{name}", file.read_bytes(), mode)
    return path.name


def _add(sdist: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    sdist.addfile(entry, io.BytesIO(content))


def bring_program(profile: str, *options: str) -> Path:
    """Puts the program and the licences of what it is linked with where the wheel is made of."""
    built = os.environ.get("TILESCOPE_EXECUTABLE") or build_program(profile, *options)
    place = ROOT / "python" / "tilescope" / "bin" / NAME
    place.parent.mkdir(exist_ok=True)
    shutil.copyfile(built, place)
    place.chmod(0o755)
    strip = shutil.which("strip")
    if strip:
        # Line tables are two thirds of a build that is not for packages.
        subprocess.run([strip, place], check=True)
    _bring_notices()
    return place


def build_program(profile: str, *options: str) -> Path:
    """Builds the program; with `options`, other features of it."""
    directory = target_directory()
    oldest = os.environ.get("TILESCOPE_GLIBC")
    command = ["cargo", "build"]
    if oldest:
        triple = f"{platform.machine()}-unknown-linux-gnu"
        command = ["cargo", "zigbuild", "--target", f"{triple}.{oldest}"]
        directory /= triple
    command += ["--locked", "--profile", profile, "--package", "tilescope", *options]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    return directory / profile.replace("dev", "debug") / NAME


def target_directory() -> Path:
    """Where cargo puts what it builds."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return Path(json.loads(said)["target_directory"])


def _bring_notices() -> None:
    command = ["cargo", "xtask", "notices"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    (ROOT / "python" / "THIRD-PARTY-NOTICES").write_bytes(said)


def main(arguments: list[str]) -> None:
    if arguments[0] == "--target-directory":
        print(target_directory())
    elif arguments[0] == "--sdist":
        print(Path(arguments[1], build_sdist(arguments[1])))
    else:
        print(bring_program(*arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
