"""Passes that are too small to be planned: the same sums, and nothing else is touched."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from nfs_dask.dataset import Dataset
from nfs_dask.engine.folding import folds_in_place
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import DataWarning, InputError
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.counts import ClassCounts

FIT = """
import sys, threading
import numpy as np
from nfs_dask import SparseMultinomialNB

X, y = np.random.default_rng(0).integers(0, 3, (2000, 50)), np.arange(2000) % 2
SparseMultinomialNB(k=5).fit(X, y)  # compiles
touched = []
sys.addaudithook(lambda event, args: touched.append((event, args)) if event in ("open", "os.mkdir", "tempfile.mkstemp",
    "tempfile.mkdtemp", "_thread.start_new_thread", "os.remove", "os.rename") else None)
SparseMultinomialNB(k=5).fit(X, y)
print(touched)
"""


def counted(X, y, **options):
    return Dataset(open_source(X, y)).reduce(ClassCounts(2), **options)


def test_small_data_in_memory_are_folded_as_by_an_engine(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = sparse.csr_array(rng.poisson(0.3, (500, 40))), rng.integers(0, 2, 500)
    planned = counted(X, y, engine=SerialEngine())
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 1000)
    assert open_source(X, y).n_blocks > 5
    found = counted(X, y)
    assert (found.plan, found.reused) == (None, False)
    assert planned.plan is not None
    np.testing.assert_array_equal(
        found.state.arrays["sums"], [X[y == c].sum(axis=0) for c in range(2)], err_msg="not numpy's sums"
    )
    for part in ("arrays", "totals"):
        left, right = (getattr(one.state, part) for one in (found, planned))
        assert left.keys() == right.keys()
        for name in left:
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_no_file_is_opened_and_no_thread_started():
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_large_states_and_data_elsewhere_are_planned(tmp_path):
    X, y = sparse.csr_array((4, 10_000_000), dtype=np.int64), [0, 1, 0, 1]
    assert not folds_in_place(ClassCounts(2), open_source(X, y))
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(np.eye(4)))
    assert not folds_in_place(ClassCounts(2), open_source(tmp_path / "X.npz", y))


def test_what_is_wrong_is_said_as_by_an_engine():
    with pytest.raises(InputError, match="row 1, column 0"):
        counted(np.array([[1.0], [np.nan]]), [0, 1])
    double = sparse.csr_array((np.ones(3, int), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with pytest.warns(DataWarning, match="1 of 1 blocks had rows with a column more than once"):
        Dataset(open_source(double, [0, 1])).reduce(ClassCounts(2, with_documents=True))
