"""Runs the shards of a sweep on the machines of a Ray cluster, and merges them.

    pip install ray
    python ray_sweep.py --shards 8 --results points.db -- \
        my_model.toml --vary model.batch_size=1..64 --vary options.num_io_tiles=0,32,64

The words after `--` are the arguments of `tilescope sweep`. The path of a spec is relative to the
directory of the results, which all machines must share. Each shard is a separate process with its
own file of results; a failed shard starts again and continues from its file. The files are merged
and printed.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import ray


@ray.remote(max_retries=3, retry_exceptions=True)
def shard(program: str, sweep: list[str], number: int, shards: int, results: Path) -> str:
    """Simulates one shard. Its file of results stays if it fails."""
    options = ["--shard", f"{number}/{shards}", "--results", str(results), "--jobs", "1"]
    command = [program, "sweep", *sweep, *options, "--format", "csv"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=results.parent)
    if ended.returncode == 1:
        raise RuntimeError(ended.stderr)  # something died: Ray tries the shard again
    return ended.stderr if ended.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="tilescope", help="the program on every machine")
    parser.add_argument("--shards", type=int, default=4, help="how many processes share the sweep")
    parser.add_argument("--cpus", type=int, help="processors of this machine that Ray may use")
    parser.add_argument("--results", type=Path, required=True, help="the file that all are merged to")
    parser.add_argument("sweep", nargs=argparse.REMAINDER, help="-- SPEC --vary KEY=VALUES ...")
    given = parser.parse_args()
    sweep = given.sweep[1:] if given.sweep[:1] == ["--"] else given.sweep

    # The address of a cluster comes from RAY_ADDRESS; without one, this machine is the cluster.
    ray.init(num_cpus=given.cpus, include_dashboard=False, log_to_driver=False)
    target = given.results.resolve()
    parts = [target.with_name(f"{target.stem}-{number}{target.suffix}") for number in range(1, given.shards + 1)]
    tasks = [
        shard.remote(given.program, sweep, number, given.shards, part)
        for number, part in enumerate(parts, start=1)
    ]
    problems = {problem for problem in ray.get(tasks) if problem}
    if problems:
        sys.stderr.writelines(problems)
        return 2
    merge = [given.program, "sweep", "--merge", *map(str, parts), "--results", str(target)]
    return subprocess.run(merge).returncode


if __name__ == "__main__":
    sys.exit(main())
