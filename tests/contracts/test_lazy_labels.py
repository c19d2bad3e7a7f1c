"""Labels and weights of Dask stay with the rows: the client learns what they add up to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dask.array as da
import dask.bag as db
import numpy as np
import pytest

import nfs_dask as nfs

RNG = np.random.default_rng(0)
CODES = RNG.integers(2, size=600)
X, Y = RNG.poisson(RNG.gamma(1.0, 1.0, (2, 20))[CODES] + 0.3), np.array(["ham", "spam"])[CODES]
LAZY, LABELS = da.from_array(X, chunks=(100, 20)), da.from_array(Y, chunks=100)


@pytest.fixture(scope="module")
def model() -> nfs.SparseMultinomialNB:
    return nfs.SparseMultinomialNB(k=5).fit(X, Y)


def test_scores_of_lazy_rows_and_labels_are_those_of_arrays(model: nfs.SparseMultinomialNB) -> None:
    weights = np.arange(600.0)
    assert model.score(LAZY, LABELS) == model.score(X, Y)
    lazy = model.score(LAZY, LABELS, da.from_array(weights, chunks=100))
    assert lazy == pytest.approx(model.score(X, Y, weights), rel=1e-12)
    ours, theirs = nfs.evaluate(model, LAZY, LABELS).to_json(), nfs.evaluate(model, X, Y).to_json()
    np.testing.assert_array_equal(ours.pop("confusion"), theirs.pop("confusion"))
    np.testing.assert_equal(ours, theirs)
    assert model.score(LAZY, LABELS.rechunk(200)) == model.score(X, Y)
    with pytest.raises(nfs.InputError, match="6 and 3 partitions"):
        nfs.evaluate(model, LAZY, db.from_sequence(Y.tolist(), npartitions=3))


def test_labels_of_a_bag_stay_beside_its_texts(tmp_path: Path) -> None:
    texts, labels = [f"{'cheap' if i % 3 else 'lunch'} word{i % 5}" for i in range(40)], ["a", "b"] * 20
    lazy = nfs.ingest(
        db.from_sequence(texts, npartitions=4),
        tmp_path / "lazy.zarr",
        labels=db.from_sequence(labels, npartitions=4),
    )
    listed = nfs.ingest(texts, tmp_path / "listed.zarr", labels=labels)
    assert lazy.fingerprint == listed.fingerprint
    with pytest.raises(nfs.InputError, match="4 partitions and labels= in 2"):
        nfs.ingest(
            db.from_sequence(texts, npartitions=4),
            tmp_path / "other.zarr",
            labels=db.from_sequence(labels, npartitions=2),
        )


SCRIPT = """
import dask.bag as db
import numpy as np
import nfs_dask as nfs

X = np.array([[3, 0, 1], [2, 0, 0], [0, 1, 4], [0, 2, 1]])
y = db.from_sequence(["a", "a", "b", "b"], npartitions=2)
print(nfs.SparseMultinomialNB(k=2).fit(X, y).predict(X).tolist())
"""


def test_a_script_without_a_guard_takes_labels_of_a_bag(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "['a', 'a', 'b', 'b']", done.stderr


MANY = """
import resource
import dask.array as da
import numpy as np
import nfs_dask as nfs
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        n, chunk = 100_000_000, 5_000_000
        y = da.arange(n, chunks=chunk) % 2
        X = ((da.arange(n, chunks=chunk)[:, None] + da.arange(2, chunks=2)[None, :]) % 2).astype(np.int8)
        small = nfs.SparseMultinomialNB(k="all").fit(X[:100].compute(), y[:100].compute())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model = nfs.SparseMultinomialNB(k="all").fit(X, y)
        right = model.score(X, y)
        print(right, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_million_labels_do_not_reach_the_client(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    environment = os.environ | {"DASK_DISTRIBUTED__WORKER__DAEMON": "true"}
    done = subprocess.run(
        [sys.executable, tmp_path / "many.py"], capture_output=True, text=True, timeout=580, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    right, grown = done.stdout.split()
    assert float(right) == 1.0
    assert int(grown) < 200
