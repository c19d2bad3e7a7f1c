"""Held-out documents are judged by the models of their own folds, as those models would judge them one by one."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.errors import InputError
from nfs_dask.methods.centers import CenterSettings, fit_moments
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.models.nested_centers import NestedCenters
from nfs_dask.sources.folds import Folds, by_fold
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics import held_out
from nfs_dask.statistics.held_out import HeldOut, losses, right_answers
from nfs_dask.statistics.moments import ClassMoments
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import check_statistic, fold

RNG = np.random.default_rng(11)
ROWS, WIDTH, CLASSES, FOLDS = 60, 12, 3, 2
Y = RNG.integers(0, CLASSES, ROWS)
X = RNG.poisson(0.4 + (np.arange(WIDTH) % CLASSES == Y[:, None]))
FOUND = np.arange(ROWS) % FOLDS


def model(method: str, f: int, k: int, alpha: float = 1.0) -> Any:
    """A model of the rows outside of a fold."""
    rows = f != FOUND
    documents = np.bincount(Y[rows], minlength=CLASSES).astype(float)
    if method in ("l2", "mahalanobis"):
        state = fold(ClassMoments(CLASSES, True), list(open_source(X[rows], Y[rows]).blocks(0, 1)))
        metric = "euclidean" if method == "l2" else method
        return fit_moments(np.arange(CLASSES), MemoryPanels(state, WIDTH), CenterSettings(k, metric))
    values = X if method == "multinomial" else X > 0
    totals = np.array([values[rows & (c == Y)].sum(axis=0) for c in range(CLASSES)])
    counts = Counts.of(np.arange(CLASSES), documents, totals)
    make = fit_multinomial if method == "multinomial" else fit_bernoulli
    return make(counts, Settings(k, alpha, binarize=0.0))


def statistic(method: str, ks: tuple[int, ...] = (2, 5, 12)) -> HeldOut:
    return HeldOut(FOLDS * CLASSES, tuple(tuple(model(method, f, k) for k in ks) for f in range(FOLDS)))


def blocks_of(matrix: Any, weights: Any = None, height: int = 7) -> list[Block]:
    source = by_fold(open_source(matrix, Y, weights), Folds(FOLDS, FOUND))
    (whole,) = source.blocks(0, 1)
    parts = []
    for first in range(0, ROWS, height):
        low, high = whole.indptr[first], whole.indptr[min(first + height, ROWS)]
        rows = slice(first, first + height)
        parts.append(
            Block(
                whole.indptr[first : first + height + 1] - low,
                whole.indices[low:high],
                whole.data[low:high],
                whole.codes[rows],
                WIDTH,
                None if whole.weights is None else whole.weights[rows],
                first,
                full=whole.full,
            )
        )
    return parts


def one_by_one(held: HeldOut, dense: Any) -> State:
    """What the totals should be, by a loop over documents."""
    shape = (FOLDS, len(held.models[0]))
    answers, lost = np.zeros((*shape, CLASSES, CLASSES), np.int64), np.zeros(shape)
    for row, label, f in zip(dense, Y, FOUND, strict=True):
        block = Block(*sparse_row(row), np.zeros(1, np.int32), WIDTH)
        for p, one in enumerate(held.models[f]):
            answers[f, p, label, int(one.predict(block)[0])] += 1
            if one.has_probabilities:
                lost[f, p] -= math.log(one.predict_proba(block)[0, label])
    rows = np.array([np.bincount(Y[f == FOUND], minlength=CLASSES) for f in range(FOLDS)])
    return State({}, {"rows": rows, "answers": answers, "log_loss": lost})


def sparse_row(row: Any) -> tuple[Any, Any, Any]:
    columns = np.flatnonzero(row)
    return np.array([0, len(columns)]), columns, row[columns]


@pytest.mark.parametrize("layout", ["sparse", "dense"])
@pytest.mark.parametrize("method", ["multinomial", "bernoulli", "l2", "mahalanobis"])
def test_documents_are_judged_one_by_one(method: str, layout: str) -> None:
    held = statistic(method)
    matrix = sparse.csr_array(X) if layout == "sparse" else X.astype(np.float64) + 1e-3 * (X == 0)
    blocks = blocks_of(matrix)
    assert blocks[0].full == (layout == "dense")
    totals = fold(held, blocks).totals
    truth = one_by_one(held, X if layout == "sparse" else matrix).totals
    np.testing.assert_array_equal(totals["answers"], truth["answers"])
    np.testing.assert_array_equal(totals["rows"], truth["rows"])
    np.testing.assert_array_equal(right_answers(totals), np.einsum("fpcc->fpc", truth["answers"]))
    found = losses(totals)
    assert (found is None) == (method == "l2")
    if found is not None:
        np.testing.assert_allclose(found, truth["log_loss"], rtol=1e-12)


@pytest.mark.parametrize("method", ["multinomial", "l2"])
@pytest.mark.parametrize("weights", [None, RNG.integers(0, 4, ROWS)])
def test_it_obeys_the_laws(method: str, weights: Any) -> None:
    check_statistic(statistic(method), blocks_of(sparse.csr_array(X), weights), exact=method == "l2")


def test_weights_do_not_count() -> None:
    held = statistic("multinomial")
    plain, weighted = (fold(held, blocks_of(sparse.csr_array(X), w)) for w in (None, np.arange(ROWS) % 3))
    for name, total in plain.totals.items():
        np.testing.assert_array_equal(weighted.totals[name], total)


def test_of_many_classes_only_right_answers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    held, blocks = statistic("bernoulli"), blocks_of(sparse.csr_array(X))
    expected = right_answers(fold(held, blocks).totals)
    monkeypatch.setattr(held_out, "MOST_CONFUSIONS", FOLDS * 3 * CLASSES**2 - 1)
    assert not held.counts_answers
    totals = fold(held, blocks).totals
    assert "answers" not in totals
    np.testing.assert_array_equal(right_answers(totals), expected)
    check_statistic(held, blocks, exact=False)


def test_an_impossible_document_costs_more_than_any_number() -> None:
    models = tuple((model("multinomial", f, 12, alpha=0.0),) for f in range(FOLDS))
    row = np.zeros(WIDTH)
    row[0] = 1.0
    indptr, indices, data, full = full_rows(row[None])
    never = replace(
        models[0][0], present=np.where(np.arange(CLASSES) == 1, -np.inf, -1.0)[:, None] * np.ones((1, WIDTH))
    )
    held = HeldOut(FOLDS * CLASSES, ((never,), models[1]))
    codes = np.array([1], np.int32)  # fold 0, class 1, which is ruled out
    totals = fold(held, [Block(indptr, indices, data, codes, WIDTH, full=full)]).totals
    assert totals["impossible"].tolist() == [[1], [0]]
    found = losses(totals)
    assert found is not None
    assert found.tolist() == [[np.inf], [0.0]]


def test_descriptions_tell_models_apart() -> None:
    held = statistic("multinomial")
    again, other = statistic("multinomial"), statistic("multinomial", (2, 6, 12))
    assert held.describe() == again.describe() != other.describe()
    first = held.models[0][0]
    prior = replace(first, class_log_prior=first.class_log_prior - np.array([0.0, 1e-15, 1.0]))
    binary = replace(first, threshold=0.5)
    for changed in (prior, binary):
        moved = HeldOut(held.n_classes, ((changed, *held.models[0][1:]), held.models[1]))
        assert moved.describe() != held.describe()


def test_parts_of_one_model_are_judged_and_described_as_models_are() -> None:
    ks, nested = (2, 5, 12), []
    for f in range(FOLDS):
        whole = model("mahalanobis", f, 12)
        places = [np.searchsorted(whole.support, model("mahalanobis", f, k).support) for k in ks]
        nested.append(NestedCenters.of(whole, places))
    together = HeldOut(FOLDS * CLASSES, tuple(nested))
    apart, blocks = statistic("mahalanobis", ks), blocks_of(sparse.csr_array(X))
    assert together.describe() == apart.describe() != together.in_short()
    assert together.carried_nbytes < apart.carried_nbytes
    assert len(pickle.dumps(together)) < len(pickle.dumps(apart))
    expected = fold(apart, blocks).totals
    for name, total in fold(together, blocks).totals.items():
        np.testing.assert_array_equal(total, expected[name])


def test_it_travels_without_what_it_worked_out() -> None:
    held, blocks = statistic("mahalanobis"), blocks_of(sparse.csr_array(X))
    before = len(pickle.dumps(held))
    expected = fold(held, blocks).totals
    copy = pickle.loads(pickle.dumps(held))
    assert len(pickle.dumps(held)) <= before * 1.01
    for name, total in fold(copy, blocks).totals.items():
        np.testing.assert_array_equal(total, expected[name])


def test_models_take_the_bytes_that_are_said() -> None:
    held = statistic("multinomial", (12,))
    present = sum(one.present.nbytes for models in held.models for one in models)
    assert held.carried_nbytes >= 5 * present
    assert held.array_nbytes(WIDTH, "count", weighted=False) == 0


def test_folds_need_as_many_models_of_the_same_classes() -> None:
    models = statistic("multinomial").models
    with pytest.raises(InputError, match="as many models for each fold"):
        HeldOut(FOLDS * CLASSES, (models[0], models[1][:1]))
    with pytest.raises(InputError, match="as many models for each fold"):
        HeldOut(4, models)
