"""Centers, gains and costs against fractions: offsets far beyond what varies, units of any size, weights or none."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from centers_by_hand import new, weighted_median

import nfs_dask as nfs
from nfs_dask.errors import InputError

N, M, K = 14, 4, 2
WEIGHTS = {"none": None, "whole": np.arange(N) % 3 + 1, "fractions": np.arange(1, N + 1) / 8}


def rows(offset: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, M)) * [1, 2, 0.5, 3] + offset * np.array([1, -1, 0, 0.5])
    return X * scale, np.array(["a", "b", "c"])[np.arange(N) % 3]


def exactly(X: np.ndarray, y: np.ndarray, method: str, weights: Any) -> tuple[list[Fraction], Fraction]:
    """The gain of each feature, and the cost of the K best, by their definitions."""
    w = [Fraction(1) if weights is None else Fraction(float(v)) for v in (y if weights is None else weights)]
    members = [np.flatnonzero(y == c) for c in np.unique(y)]
    weight = [sum(w[i] for i in one) for one in members]
    share = {i: w[i] / total for one, total in zip(members, weight, strict=True) for i in one.tolist()}
    gains, null = [], Fraction(0)
    for column in X.T:
        x = [Fraction(v) for v in column.tolist()]
        if method == "l1":
            centers = [weighted_median([x[i] for i in one], [w[i] for i in one]) for one in members]
            pooled = weighted_median(x, [share[i] for i in range(N)])
        else:
            centers = [sum(share[i] * x[i] for i in one) for one in members]
            pooled = sum(centers, Fraction(0)) / len(centers)
        power, scale = (1 if method == "l1" else 2), Fraction(1)
        if method in ("within", "total"):
            mean = sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)
            about = {i: mean if method == "total" else c for one, c in zip(members, centers, strict=True) for i in one}
            scale = sum(w[i] * (x[i] - about[i]) ** 2 for i in range(N)) / sum(w)
        apart = sum(share[i] * abs(x[i] - pooled) ** power for i in range(N)) / scale
        left = sum(share[i] * abs(x[i] - c) ** power for one, c in zip(members, centers, strict=True) for i in one)
        gains.append(apart - left / scale)
        null += apart
    return gains, null - sum(sorted(gains)[-K:])


def as_given(X: np.ndarray, y: np.ndarray, weights: Any, way: str, folder: Any) -> tuple[Any, Any, Any]:
    if way == "lazy":  # and in several blocks
        return da.from_array(X, chunks=(5, M)), y, weights
    if way == "store":
        return nfs.ingest(X, folder / "rows.zarr", labels=y), None, weights
    return (X if way == "dense" else sp.csr_array(X)), y, weights


def is_exact(found: float, exact: Fraction) -> bool:
    return abs(Fraction(found) - exact) <= exact / 10**12


CASES = [
    (method, weights, offset)
    for method, weights, offset in itertools.product(
        ["l2", "within", "total", "l1"], WEIGHTS, [0.0, 1e3, 1e9, 1e12, 1e15]
    )
    # Sums of products with weights that are no whole numbers lose twice the digits of the offset: docs/centers.md.
    if method == "l1" or weights != "fractions" or offset <= 1e9
]


@pytest.mark.parametrize(("method", "weights", "offset"), CASES)
def test_offsets_and_units_cost_no_digits(method: str, weights: str, offset: float) -> None:
    for scale in (1e-150, 1e-100, 1.0, 1e130):
        X, y = rows(offset, scale)
        if method != "l1" and offset * scale > 1e144:
            with pytest.raises(InputError, match="scale the values"):
                new(method, K).fit(X, y)
            continue
        gains, cost = exactly(X, y, method, WEIGHTS[weights])
        model = new(method, K).fit(X, y, WEIGHTS[weights])
        assert is_exact(model.objective_, cost)
        assert all(map(is_exact, model.scores_.tolist(), gains))
        assert model.get_support(indices=True).tolist() == sorted(np.argsort(np.array(gains, object))[-K:])


@pytest.mark.parametrize("way", ["dense", "sparse", "lazy", "store"])
@pytest.mark.parametrize("method", ["l2", "within", "total", "l1"])
def test_so_they_do_wherever_rows_are(method: str, way: str, tmp_path: Any) -> None:
    X, y = rows(1e15, 1.0)
    gains, cost = exactly(X, y, method, None)
    given, labels, weights = as_given(X, y, None, way, tmp_path)
    model = new(method, K).fit(given, labels, weights)
    assert is_exact(model.objective_, cost)
    assert all(map(is_exact, model.scores_.tolist(), gains))


@pytest.mark.parametrize("method", ["l2", "within", "total"])
def test_documents_that_come_later_cost_no_digits(method: str) -> None:
    X, y = rows(1e15, 1.0)
    _, cost = exactly(X, y, method, None)
    for cuts in itertools.combinations(range(1, N), 2):
        model = new(method, K)
        for part in np.split(np.arange(N), cuts):
            model.partial_fit(X[part], y[part], classes=["a", "b", "c"])
        assert is_exact(model.objective_, cost)
