"""Workers stay under what the plan said, and the plan is not idle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.dataset import open_dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.ingestion.ingest import ingest

STATUS = Path("/proc/self/status")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_nbytes() -> int:
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("panels", [1, 6])
def test_peaks_are_as_planned(cluster: Client, tmp_path: Path, panels: int) -> None:
    corpus = GeneratedCorpus(600_000, 4_000_000, 2, words_per_document=30, block_rows=50_000)
    dataset = ingest(corpus, tmp_path / "corpus.zarr")
    counts = dataset.class_counts()
    dataset.reuse = False
    peaks = {}
    for repeat in range(3):
        cluster.run(reset_peak)
        plan = dataset.reduce(counts, DaskEngine(panels=panels, spool=str(tmp_path))).plan
        assert plan is not None
        peaks[repeat] = max(cluster.run(peak_nbytes).values()), plan.peak_nbytes
    for measured, planned in peaks.values():
        assert planned / 1.5 <= measured <= planned, peaks


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("panels", [1, 4])
def test_peaks_of_dense_chunks_are_as_planned(cluster: Client, tmp_path: Path, panels: int) -> None:
    def make(block_info: Any = None) -> Any:
        (first, last), _ = block_info[None]["array-location"]
        made = np.multiply.outer(np.arange(first, last, dtype=float), np.arange(1, 401))
        made %= 7  # what a chunk is made from would be memory of the user's
        return made

    X = da.map_blocks(make, chunks=((40_000,) * 6, (400,)), dtype=float)
    dataset = open_dataset(X, labels=np.arange(len(X)) % 2)
    plan = dataset.reduce(dataset.class_counts(), DaskEngine(panels=panels, spool=str(tmp_path))).plan
    cluster.run(reset_peak)
    dataset.reduce(dataset.class_counts(), DaskEngine(panels=panels, spool=str(tmp_path)))
    measured = max(cluster.run(peak_nbytes).values())
    assert plan.peak_nbytes / 1.5 <= measured <= plan.peak_nbytes, (measured, plan.peak_nbytes)


CLIENT = """
import json, sys
import nfs_dask as nfs
from nfs_dask.estimators.loading import make_estimator
from tests.engine.test_engine_memory import peak_nbytes
from distributed import Client

if __name__ == "__main__":
    place, method, address = sys.argv[1:]
    with Client(address):
        estimator = make_estimator(method, k=1000, **({"binarize": 0} if method == "bernoulli" else {}))
        dataset = nfs.open_dataset(place, reuse=False)
        planned = nfs.plan(dataset, estimator).client_nbytes
        before = peak_nbytes()
        estimator.fit(dataset)
        print(json.dumps([peak_nbytes() - before, planned]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize(("method", "idle"), [("multinomial", 3), ("bernoulli", 3), ("l2", 10), ("mahalanobis", 3)])
def test_the_client_stays_under_what_the_plan_says_of_it(
    cluster: Client, tmp_path: Path, method: str, idle: int
) -> None:
    """Of l2, which looks at narrow panels one after another, plans say as much as of methods that hold all features."""
    ingest(GeneratedCorpus(300_000, 4_000_000, 2, words_per_document=30, block_rows=50_000), tmp_path / "corpus.zarr")
    arguments = [str(tmp_path / "corpus.zarr"), method, cluster.scheduler.address]
    done = subprocess.run([sys.executable, "-c", CLIENT, *arguments], capture_output=True, text=True, check=True)
    measured, planned = json.loads(done.stdout.splitlines()[-1])
    assert planned / idle <= measured <= planned, (measured, planned)
