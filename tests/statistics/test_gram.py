"""Gram matrices against numpy, reference vectors, and the laws."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from nfs_dask.arrays.block import Block
from nfs_dask.errors import InputError
from nfs_dask.statistics import gram as module
from nfs_dask.statistics.gram import Gram, covariance
from nfs_dask.testing import check_statistic, fold

M = 6


def rows_block(X: np.ndarray, codes: Any, weights: np.ndarray | None = None, full: bool = False) -> Block:
    """A block with its zeros left out, or with all of them stored."""
    rows, columns = np.nonzero(np.ones(X.shape) if full else X)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return Block(
        indptr, columns.astype(np.int32), X[rows, columns], np.asarray(codes, np.int32), X.shape[1], weights, full=full
    )


def random_blocks(dtype: str, weights: str | None, full: bool = False) -> tuple[list[Block], Any, Any, Any]:
    """Blocks of correlated features with zeros among them; the matrix, the classes and the weights of all rows."""
    rng = np.random.default_rng(0)
    n = 40
    X = (rng.normal(size=(n, M)) @ rng.normal(size=(M, M)) * 9 * (rng.random((n, M)) < 0.7)).astype(dtype)
    codes = rng.integers(3, size=n)
    w = {None: None, "whole": rng.integers(0, 4, n), "real": rng.random(n)}[weights]
    cuts = [0, 7, 7, 8, 20, 33, n]
    blocks = [
        rows_block(X[a:b], codes[a:b], None if w is None else w[a:b], full)
        for a, b in zip(cuts, cuts[1:], strict=False)
    ]
    return blocks, X.astype(float), codes, np.ones(n) if w is None else w


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
@pytest.mark.parametrize("full", [False, True], ids=["sparse", "dense"])
def test_laws_and_numpy(dtype: str, weights: str | None, full: bool) -> None:
    blocks, X, codes, w = random_blocks(dtype, weights, full)
    statistic = Gram(3, shift=np.array([0.0, 1, -2, 0.5, 0, 3]))
    check_statistic(statistic, blocks, exact=False)
    means, S = covariance(fold(statistic, blocks))
    for c in range(3):
        np.testing.assert_allclose(means[c], np.average(X[codes == c], axis=0, weights=w[codes == c]), rtol=1e-12)
    np.testing.assert_allclose(S, np.cov(X, rowvar=False, bias=True, aweights=w), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(S, S.T)


@pytest.mark.parametrize("full", [False, True], ids=["sparse", "dense"])
def test_blocks_are_made_dense_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    blocks, *_ = random_blocks("float64", "real", full)
    statistic = Gram(3, shift=np.ones(M))
    whole = covariance(fold(statistic, blocks))
    seen = []
    pieces = module._pieces

    def watched(block: Block) -> Any:
        for rows, piece in pieces(block):
            seen.append(piece.shape)
            yield rows, piece

    monkeypatch.setattr(module, "_pieces", watched)
    monkeypatch.setattr(module, "_PIECE_NBYTES", 3 * 8 * M + 5)
    cut = covariance(fold(statistic, blocks))
    assert max(seen) == (3, M)
    assert sum(rows for rows, _ in seen) == 40
    for a, b in zip(whole, cut, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_roots_of_the_reference(golden: Any) -> None:
    for case in golden("centers_full_covariance.json"):
        X, y = np.array(case["inputs"]["X"]), np.array(case["inputs"]["y"])
        for shift in (np.zeros(X.shape[1]), X[0]):
            statistic = Gram(2, shift)
            state = statistic.merge(
                fold(statistic, [rows_block(X[:5], y[:5])]), fold(statistic, [rows_block(X[5:], y[5:])])
            )
            means, S = covariance(state)
            np.testing.assert_allclose(S, case["inputs"]["S"], rtol=1e-13, atol=1e-13)
            values, vectors = np.linalg.eigh(S)
            root = vectors / np.sqrt(values) @ vectors.T
            np.testing.assert_allclose(root, case["expected"]["root"], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(means, [X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)], rtol=1e-13)


def test_a_shift_keeps_the_digits_of_far_away_data() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(500, M)) @ rng.normal(size=(M, M))
    X = 2.0**30 + np.round(noise * 2**20) / 2**20  # what is left when 2^30 is taken off is exact
    statistic = Gram(1, shift=X[0])
    _, S = covariance(fold(statistic, [rows_block(X, np.zeros(500))]))
    np.testing.assert_allclose(S, np.cov(X - 2.0**30, rowvar=False, bias=True), rtol=1e-11)


def test_classes_without_documents_have_no_means() -> None:
    X = np.arange(1.0, 9).reshape(4, 2)
    means, S = covariance(fold(Gram(3, X[0]), [rows_block(X, [0, 2, 2, 0])]))
    np.testing.assert_allclose(means, [[4, 5], [0, 0], [4, 5]])
    np.testing.assert_allclose(S, np.full((2, 2), 5.0))


def test_the_description_names_the_shift() -> None:
    a, b = Gram(2, np.array([1.0, 2.0])), Gram(2, np.array([1.0, 2.5]))
    assert json.loads(json.dumps(a.describe())) == a.describe() == Gram(2, np.array([1, 2])).describe()
    assert a.describe() != b.describe()
    assert a != b
    assert {a: 1}[pickle.loads(pickle.dumps(a))] == 1
    with pytest.raises(ValueError, match="read-only"):
        a.shift[0] = 7


def test_what_does_not_belong_together_is_refused() -> None:
    X = np.ones((2, 2))
    a, b = Gram(1, np.zeros(2)), Gram(1, np.ones(2))
    block = rows_block(X, [0, 0])
    with pytest.raises(InputError, match="different shifts"):
        a.merge(fold(a, [block]), fold(b, [block]))
    with pytest.raises(InputError, match="2 columns"):
        fold(Gram(1, np.zeros(3)), [block])
    with pytest.raises(InputError, match="finite"):
        Gram(1, np.array([np.nan]))
    with pytest.raises(InputError, match="at least one"):
        covariance(a.zero())
