"""Sparse centers by their definitions, in plain numpy."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from nfs_dask import SparseCentroid

METHODS = {
    "l2": {"metric": "euclidean"},
    "within": {"metric": "mahalanobis"},
    "total": {"metric": "mahalanobis", "covariance": "total"},
    "full": {"metric": "mahalanobis", "covariance": "full"},
    "l1": {"metric": "manhattan"},
}
OF_COLUMNS = ["l2", "within", "total", "l1"]
M = 12

HIDDEN = {  # what they cannot do
    "l2": {"predict_proba", "predict_log_proba"},
    "within": set(),
    "total": {"predict_proba", "predict_log_proba"},
    "full": {"predict_proba", "predict_log_proba", "forget", "inverse_transform"},
    "l1": {"predict_proba", "predict_log_proba", "partial_fit", "forget"},
}

each_method = pytest.mark.parametrize("method", METHODS)
each_of_columns = pytest.mark.parametrize("method", OF_COLUMNS)


def data(n_classes=3, seed=0, n=90, m=M, whole=False):
    """Rows of any sign around centers of their classes, some features nearer to each other than others."""
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    X = rng.normal(size=(n_classes, m))[y] * np.linspace(2, 0, m) + rng.normal(size=(n, m)) * rng.uniform(0.5, 3, m)
    X[rng.random((n, m)) < 0.2] = 0
    return (np.rint(4 * X).astype(np.int64) if whole else X), np.array(["a", "b", "c", "d", "e"])[y]


def weighted_median(values, weights):
    """The least value at which half of the weight is reached; where it is just half, the midpoint to the next one."""
    points = sorted((v, w) for v, w in zip(values, weights, strict=True) if w > 0)
    half, seen = sum(w for _, w in points) / 2, 0
    for value, group in itertools.groupby(points, key=lambda point: point[0]):
        seen += sum(w for _, w in group)
        if seen >= half:
            return value if seen > half else (value + min(v for v, _ in points if v > value)) / 2
    raise AssertionError("no weights")


class Truth:
    """Centers, gains and costs from their definitions."""

    def __init__(self, X, y, method, weights=None, floor=0.0):
        X = np.asarray(X, np.float64)
        self.X, self.method = X, method
        self.classes, codes = np.unique(y, return_inverse=True)
        w = np.ones(len(y)) if weights is None else np.asarray(weights, float)
        self.codes, self.scale = codes, np.ones(X.shape[1])
        self.share = w / np.bincount(codes, w)[codes]
        rows = [np.flatnonzero(codes == c) for c in range(len(self.classes))]
        if method == "l1":
            w = np.array([Fraction(v) for v in w])  # in floats, halves would not be halves
            shares = w / np.array([w[one].sum() for one in rows])[codes]
            self.centers = np.array([[weighted_median(x, w[one]) for x in X[one].T] for one in rows])
            self.pooled = np.array([weighted_median(x, shares) for x in X.T])
            return
        self.centers = np.array([np.average(X[one], axis=0, weights=w[one]) for one in rows])
        self.pooled = self.centers.mean(axis=0)
        if method != "l2":
            about = self.centers[codes] if method == "within" else np.average(X, axis=0, weights=w)
            self.scale = np.maximum(np.average((X - about) ** 2, axis=0, weights=w), floor)

    def costs(self, centers):
        """What each feature costs with these centers of the classes, (m,)."""
        apart = np.abs(self.X - np.broadcast_to(centers, self.centers.shape)[self.codes])
        return (self.share[:, None] * (apart if self.method == "l1" else apart**2 / self.scale)).sum(axis=0)

    @property
    def gains(self):
        return self.costs(self.pooled) - self.costs(self.centers)

    def support(self, k):
        return np.sort(np.argsort(-self.gains, kind="stable")[:k])

    def objective(self, support):
        inside = np.isin(np.arange(self.X.shape[1]), support)
        return np.where(inside, self.costs(self.centers), self.costs(self.pooled)).sum()

    def distances(self, X, support):
        apart = np.abs(np.asarray(X, float)[:, None, support] - self.centers[:, support])
        return (apart if self.method == "l1" else apart**2 / self.scale[support]).sum(axis=2)


def new(method, k=4, **parameters):
    return SparseCentroid(k, **METHODS[method], **parameters)


def assert_same(one, other, method):
    """To the bit; matrices of covariances, whose sums have an order, up to rounding."""
    np.testing.assert_array_equal(one.get_support(), other.get_support())
    np.testing.assert_array_equal(one.class_count_, other.class_count_)
    if method == "full":
        np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-10)
        np.testing.assert_allclose(one.centers_, other.centers_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-9, atol=1e-10)
        return
    assert one.objective_ == other.objective_
    for name in ("centers_", "common_center_", "scores_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    if one.model_.variances is not None:
        np.testing.assert_array_equal(one.model_.variances, other.model_.variances)
