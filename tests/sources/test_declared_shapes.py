"""What a matrix or a file says of its size is no reason to ask for memory: it is refused in words first."""

from __future__ import annotations

import tracemalloc

import dask.array as da
import numpy as np
import pytest
import sparse as pydata
from dask import delayed
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError

WIDE, TALL = 2**33, 2**44
Y = ["a", "b", "a"]
MODEL = nfs.SparseMultinomialNB(k=2).fit(np.eye(3, dtype=int), Y)


def wide() -> sparse.csr_array:
    return sparse.csr_array(
        (np.array([1, 2, 1, 1]), np.array([0, 5, WIDE - 1, 5]), np.array([0, 2, 3, 4])), shape=(3, WIDE)
    )


def tall() -> sparse.coo_array:
    return sparse.coo_array((np.array([1]), (np.array([TALL - 1]), np.array([0]))), shape=(TALL, 3))


def wide_npz(tmp_path):
    X = wide()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": np.array([0, 1, 0])}
    np.savez(tmp_path / "wide.npz", format=b"csr", shape=np.array(X.shape), **parts)
    return nfs.open_dataset(tmp_path / "wide.npz", labels="y")


def wide_chunks(tmp_path):
    chunks = da.from_delayed(delayed(wide)(), shape=(3, WIDE), dtype=int)
    return nfs.SparseMultinomialNB().fit(chunks, Y)


CLAIMS = [
    (lambda _: nfs.SparseMultinomialNB().fit(wide(), Y), "8,589,934,592 columns"),
    (lambda _: nfs.SparseCentroid(metric="manhattan").fit(wide(), Y), "8,589,934,592 columns"),
    (lambda _: nfs.SparseMultinomialNB().partial_fit(wide(), Y, classes=["a", "b"]), "8,589,934,592 columns"),
    (lambda _: nfs.path(wide(), "multinomial", y=Y), "8,589,934,592 columns"),
    (lambda _: nfs.cross_validate(wide(), Y, method="l2", ks=[2], folds=[0, 1, 0]), "8,589,934,592 columns"),
    (lambda path: nfs.ingest(wide(), path / "s.zarr", labels=Y), "8,589,934,592 columns"),
    (lambda _: MODEL.predict(wide()), "8589934592 features"),
    (wide_npz, "8,589,934,592 columns"),
    (wide_chunks, "8,589,934,592 columns"),
    (lambda _: nfs.SparseMultinomialNB().fit(tall(), Y), "17,592,186,044,416 rows, and .* would take 128.0 TiB"),
    (lambda _: MODEL.predict(tall()), "17,592,186,044,416 rows"),
    (lambda path: nfs.ingest(tall(), path / "s.zarr"), "17,592,186,044,416 rows"),
    (lambda _: MODEL.predict(pydata.COO(np.array([[TALL - 1], [0]]), np.array([1]), shape=(TALL, 3))), "rows"),
]


@pytest.mark.parametrize(("claim", "message"), CLAIMS)
def test_a_size_that_is_only_claimed_is_refused_before_memory_is_asked_for(tmp_path, claim, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            claim(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.parametrize("column", [2**31 + 1, 2**33, 2**70])
def test_columns_of_svmlight_that_nothing_can_number_are_named(tmp_path, column):
    (tmp_path / "a.svm").write_text(f"1 1:1\n0 {column}:1\n")
    with pytest.raises(InputError, match=r"a.svm, line 2: .* has a column beyond 2,147,483,648"):
        nfs.open_dataset(tmp_path / "a.svm")
