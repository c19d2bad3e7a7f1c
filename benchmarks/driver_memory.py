"""What the driver of a fit takes that was left to a cluster, beside the worker that started it.

python benchmarks/driver_memory.py DIR

Of each store: the most memory of the driver, of the largest worker, and of the same command where it drives by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.run_status import has_status, read_status

CASES = [(20_000, 10_000), (400_000, 10_000), (400_000, 1_000_000), (400_000, 4_000_000)]  # documents, features
COMMAND = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"
DASK = "import sys; from distributed.cli.dask_{0} import main; sys.exit(main(sys.argv[1:]))"


@contextmanager
def cluster_in(folder: Path, n_workers: int = 2) -> Iterator[tuple[Path, list[psutil.Process]]]:
    """A scheduler's file, and workers of one thread and 2 GiB."""
    file = folder / "scheduler.json"
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    with open(folder / "cluster.log", "wb") as log:
        started = [subprocess.Popen([sys.executable, "-c", DASK.format("scheduler"), *words], stdout=log, stderr=log)]
        try:
            while not file.exists():
                time.sleep(0.1)
            words = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", "2GiB"]
            words += ["--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
            worker = [sys.executable, "-c", DASK.format("worker"), *words]
            started += [subprocess.Popen(worker, stdout=log, stderr=log) for _ in range(n_workers)]
            yield file, [psutil.Process(one.pid) for one in started[1:]]
        finally:
            for one in reversed(started):
                one.terminate()
                one.wait()


def peak_of(process: psutil.Process) -> int:
    """The kernel's high-water mark, in bytes; nothing of one that has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def left_to_the_cluster(store: Path, folder: Path) -> dict[str, int]:
    """Peaks of the driver and of the largest worker, watched until the fit has ended."""
    with cluster_in(folder) as (file, workers):
        fit(store, folder, "--scheduler", file, "--run", folder / "run", "--detach", "--on-cluster")
        driver, most = None, 0
        while not has_status(folder / "run") or (status := read_status(folder / "run")).live:
            started = [child for worker in workers for child in worker.children()]
            driver = driver or next((one for one in started if "end_with_parent" in " ".join(one.cmdline())), None)
            most = max(most, 0 if driver is None else peak_of(driver))
            time.sleep(0.02)
        assert status.state == "finished", status
        return {"driver": most, "worker": max(map(peak_of, workers))}


def by_itself(store: Path, folder: Path) -> int:
    """The peak of the command that drives the same cluster from here."""
    with cluster_in(folder) as (file, _):
        return fit(store, folder, "--scheduler", file, "--run", folder / "run")


def fit(store: Path, folder: Path, *options: object) -> int:
    """The peak of a command."""
    words = ["fit", store, folder / "model", "-k", 1000, "--no-cache", *options]
    with open(folder / "fit.log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-c", COMMAND, *map(str, words)], stdout=log, stderr=log)
        _, code, used = os.wait4(process.pid, 0)
    assert code == 0, (folder / "fit.log").read_text()
    return used.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for documents, features in CASES:
        here = folder / f"{documents}x{features}"
        for name in ("left", "own"):
            (here / name).mkdir(parents=True)
        nfs.ingest(GeneratedCorpus(documents, features, words_per_document=40), here / "mail.zarr")
        found = left_to_the_cluster(here / "mail.zarr", here / "left")
        found["command"] = by_itself(here / "mail.zarr", here / "own")
        mib = {name: round(nbytes / 2**20) for name, nbytes in found.items()}
        print(json.dumps({"documents": documents, "features": features, "MiB": mib}), flush=True)


if __name__ == "__main__":
    main()
