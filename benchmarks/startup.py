"""What a new user waits for: the first commands, the start of a fit, and what an idle worker takes.

python benchmarks/startup.py --repeats 3

Commands are processes of their own. "First" has an empty NUMBA_CACHE_DIR, "later" what the first has left there.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NFS = (sys.executable, "-c", "from nfs_dask.cli.main import cli; cli()")
WORKER = """
import psutil, distributed, distributed.nanny
before = psutil.Process().memory_info().rss
from nfs_dask.cluster.warming import warm_up
print(before, warm_up([], "")["rss"])
"""

Cost = tuple[float, float]  # seconds on the wall, and of processor


def write_mails(path: Path, n: int) -> None:
    """Mails of words with the frequencies of a language, every third of them spam."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(30_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["folder", "text"])
        for number in range(n):
            text = " ".join(chance.choices(words, weights, k=chance.randint(50, 400)))
            spam = number % 3 == 0
            rows.writerow(["spam" if spam else "ham", f"caf\u00e9 {text}" if spam else text])


def cost(*command: str, cache: Path) -> Cost:
    """What a command takes, with all its processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def round_of(work: Path, mails: Path) -> dict[str, Cost]:
    """Each command twice in an empty folder; only a kept cache of compiled code makes the second one differ."""
    costs: dict[str, Cost] = {}
    cache = work / "numba"
    for when in ("first", "later"):
        store, model = work / f"{when}.zarr", work / f"{when}.model"
        ingest = ("ingest", str(mails), "--label-column", "folder", str(store))
        costs[f"ingest, {when}"] = cost(*NFS, *ingest, cache=cache)
        costs[f"fit, {when}"] = cost(*NFS, "fit", str(store), str(model), "-k", "100", cache=cache)
    again = ("fit", str(work / "later.zarr"), str(work / "again.model"), "-k", "100")
    costs["fit, counts kept"] = cost(*NFS, *again, cache=cache)
    costs["import numpy"] = cost(sys.executable, "-c", "import numpy", cache=cache)
    return costs


def memory(cache: Path) -> tuple[int, int]:
    """Bytes of a worker's process: as Dask starts it, and warm, with compiled code from the cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", WORKER], env=environment, check=True, capture_output=True)
    plain, warm = map(int, done.stdout.split())
    return plain, warm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mails", type=int, default=5_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mails = Path(folder, "mails.csv")
        write_mails(mails, asked.mails)
        rounds = []
        for number in range(asked.repeats):
            work = Path(folder, str(number))
            work.mkdir()
            rounds.append(round_of(work, mails))
        plain, warm = memory(work / "numba")
    print("| command | seconds | of processor |\n| --- | --- | --- |")
    for name in rounds[0]:
        wall, processor = (statistics.median(one[name][side] for one in rounds) for side in (0, 1))
        print(f"| {name} | {wall:.2f} | {processor:.2f} |")
    print(f"\nA worker takes {plain / 2**20:.0f} MiB as Dask starts it, and {warm / 2**20:.0f} MiB warm.")


if __name__ == "__main__":
    main()
