"""Sparse l1 centers of gene expression: equal to the last bit to what exact integers say."""

from __future__ import annotations

import math

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import DaskEngine, SparseCentroid
from nfs_dask.dataset import Dataset
from nfs_dask.methods.class_medians import class_medians
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.places import data_file

SEVERAL_BLOCKS = Layout(chunk=1 << 16, shard=1 << 18, row_chunk=8, row_shard=32, block=1 << 18)


class Genes:
    """A set, and its medians, dispersions and gains in integers: all doubles times one power of two."""

    def __init__(self, X, y):
        self.X, self.y = X, y
        rows = [np.flatnonzero(y == c) for c in np.unique(y)]
        sizes = [len(one) for one in rows]
        self.medians = np.array([np.median(X[one], axis=0) for one in rows])
        whole = math.lcm(*sizes)
        shares = np.array([whole // n for n in sizes])[np.unique(y, return_inverse=True)[1]]
        order = np.argsort(X, axis=0, kind="stable")
        cumulated = 2 * np.cumsum(shares[order], axis=0)
        first = (cumulated >= len(sizes) * whole).argmax(axis=0)
        ascending = np.take_along_axis(X, order, axis=0)
        at, half = np.arange(X.shape[1]), len(sizes) * whole
        low = ascending[first, at]
        above = np.where(ascending > low, ascending, np.inf).min(axis=0)
        reached = 2 * (shares[:, None] * (low >= X)).sum(axis=0) == half
        self.pooled = np.where(reached, 0.5 * (low + np.where(reached, above, 0.0)), low)

        values, *centers = self._integers(X, *self.medians, self.pooled)
        apart = [abs(values[one] - center).sum(axis=0) for one, center in zip(rows, centers[:-1], strict=True)]
        together = sum(
            (whole // n) * abs(values[one] - centers[-1]).sum(axis=0) for one, n in zip(rows, sizes, strict=True)
        )
        own = sum((whole // n) * one for one, n in zip(apart, sizes, strict=True))
        self.gain = together - own  # times ``whole`` and the power of two
        self.dispersions = np.array([self._quotients(one, n) for one, n in zip(apart, sizes, strict=True)])
        self.pooled_dispersions = self._quotients(together, whole)
        self.gains = self._quotients(self.gain, whole)

    def _integers(self, *parts):
        """Doubles as Python integers, all times the same power of two."""
        halves = [np.frexp(part) for part in parts]
        least = min(int(exponent[mantissa != 0].min()) for mantissa, exponent in halves)
        self.unit = 1 << (53 - least)
        return [
            np.ldexp(mantissa, 53).astype(np.int64).astype(object)
            << np.where(mantissa, exponent - least, 0).astype(object)
            for mantissa, exponent in halves
        ]

    def _quotients(self, integers, n):
        """Correctly rounded, as Python divides integers."""
        return np.array([one / (n * self.unit) for one in integers])

    def support(self, k):
        return np.sort(sorted(range(self.X.shape[1]), key=lambda i: (-self.gain[i], i))[:k])


@pytest.fixture(scope="module", params=["chowdary", pytest.param("singh", marks=pytest.mark.slow)])
def genes(request):
    """A set from NFS_DASK_DATA, or from ../shared/data beside the checkout."""
    with np.load(data_file(f"{request.param}.npz")) as arrays:
        return Genes(arrays["X"], arrays["y"])


@pytest.fixture(scope="module")
def stored(genes, tmp_path_factory):
    """The set as a store of several blocks."""
    path = tmp_path_factory.mktemp("genes") / "genes.zarr"
    write_store(open_source(genes.X, genes.y), path, layout=SEVERAL_BLOCKS)
    assert nfs.open_dataset(path).source.n_blocks >= 4
    return path


def assert_exact(medians, genes):
    assert medians.columns.tolist() == list(range(genes.X.shape[1]))
    np.testing.assert_array_equal(medians.centers, genes.medians)
    np.testing.assert_array_equal(medians.pooled, genes.pooled)
    np.testing.assert_array_equal(medians.dispersions, genes.dispersions)
    np.testing.assert_array_equal(medians.pooled_dispersions, genes.pooled_dispersions)
    np.testing.assert_array_equal(medians.gains, genes.gains)


def test_medians_and_dispersions_in_memory(genes):
    assert_exact(class_medians(Dataset(open_source(genes.X, genes.y))).medians, genes)


def test_the_same_from_a_store(genes, stored):
    assert_exact(class_medians(nfs.open_dataset(stored, reuse=False)).medians, genes)


def test_the_same_in_many_passes(genes, stored, monkeypatch):
    """As large data are read: edges from a sample, counts between them, and the values next to each median."""
    for limit in ("MOST_ROWS", "MOST_ALL"):
        monkeypatch.setattr(f"nfs_dask.methods.memory_budget.{limit}", 16)
    monkeypatch.setattr("nfs_dask.methods.memory_budget.PILOT_BLOCKS", 2)
    found = class_medians(nfs.open_dataset(stored, reuse=False))
    assert {"sample", "cells", "pinned"} <= {one.name for one in found.passes}
    assert_exact(found.medians, genes)


def test_supports_of_every_size(genes, stored, cluster):
    ks = [1, 2, 5, 11, 22, 50, 111, 223, 446, 1000, 5000, 12_000, "all"]
    path = nfs.path(genes.X, "l1", ks, y=genes.y)
    dataset = nfs.open_dataset(stored, reuse=False)
    spread = nfs.path(dataset, "l1", ks, engine=DaskEngine())
    for k in path.ks.tolist():
        np.testing.assert_array_equal(path.support(k), genes.support(k))
        np.testing.assert_array_equal(spread.support(k), genes.support(k))
    for k in (5, 223):
        for model in (
            SparseCentroid(k, metric="manhattan").fit(genes.X, genes.y),
            SparseCentroid(k, metric="manhattan", engine=DaskEngine()).fit(dataset),
        ):
            support = model.get_support(indices=True)
            np.testing.assert_array_equal(support, genes.support(k))
            np.testing.assert_array_equal(model.centers_, genes.medians[:, support])
            np.testing.assert_array_equal(model.common_center_, genes.pooled[support])
            np.testing.assert_array_equal(model.scores_, genes.gains)
            apart = np.abs(genes.X[:, None, support] - genes.medians[:, support]).sum(axis=2)
            clear = np.abs(apart[:, 0] - apart[:, 1]) > 1e-9 * apart.max()
            np.testing.assert_array_equal(model.predict(genes.X)[clear], apart.argmin(axis=1)[clear])
            assert clear.mean() > 0.9


@pytest.mark.parametrize(
    ("metric", "covariance"), [("euclidean", "within"), ("mahalanobis", "within"), ("mahalanobis", "total")]
)
def test_squared_distances_choose_what_numpy_chooses(genes, stored, metric, covariance):
    X, y = genes.X, genes.y
    means = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    gains = (means[1] - means[0]) ** 2 / 2
    if metric == "mahalanobis":
        about = means[y] if covariance == "within" else X.mean(axis=0)
        gains = gains / ((X - about) ** 2).mean(axis=0)
    for given in ((X, y), (nfs.open_dataset(stored, reuse=False),)):
        for k in (1, 22, 223, 2000):
            model = SparseCentroid(k, metric=metric, covariance=covariance).fit(*given)
            np.testing.assert_allclose(model.scores_, gains, rtol=1e-9, atol=1e-14)
            least = np.sort(gains)[-k]
            support = model.get_support()
            assert support[gains > least * (1 + 1e-9)].all() and not support[gains < least * (1 - 1e-9)].any()
