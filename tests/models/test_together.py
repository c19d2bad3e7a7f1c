"""Models that score rows together say what each of them says alone, to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.errors import InputError
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.centers_together import CentersTogether
from nfs_dask.models.model import NOT_JUDGED
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.models.naive_bayes_together import NaiveBayesTogether
from nfs_dask.models.nested_centers import NestedCenters
from nfs_dask.models.together import OneByOne

RNG = np.random.default_rng(5)
WIDTH, CLASSES = 40, 3
LABELS = np.arange(CLASSES)
TOTALS = RNG.poisson(4 * RNG.random((CLASSES, WIDTH)))
ROWS = RNG.poisson(0.2 + RNG.random((30, 1)), (30, WIDTH)) * RNG.choice([0.1, 1.0, 3.7], (30, WIDTH))


def sparse_block(rows: Any) -> Block:
    """With a stored zero in the first row, and columns that none of the models has."""
    kept = rows != 0
    kept[0] = True
    indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return Block(indptr, np.nonzero(kept)[1], rows[kept], np.zeros(len(rows), np.int32), rows.shape[1])


def dense_block(rows: Any) -> Block:
    indptr, indices, data, full = full_rows(np.ascontiguousarray(rows))
    return Block(indptr, indices, data, np.zeros(len(rows), np.int32), rows.shape[1], full=full)


BLOCKS = pytest.mark.parametrize("block_of", [sparse_block, dense_block])


def naive_bayes(method: str, documents: Any = (20.0, 20.0, 20.0)) -> list[NaiveBayesModel]:
    """Of several smoothings, by which their features differ; without any, classes are ruled out."""
    counts = Counts.of(LABELS, np.array(documents), TOTALS * (np.array(documents) > 0)[:, None])
    fit = fit_multinomial if method == "multinomial" else fit_bernoulli
    settings = [Settings(k, alpha, binarize=0.0) for k in (3, 30, 7) for alpha in (0.0, 0.5, 5.0)]
    return [fit(counts, one) for one in settings]


def centers(method: str, seen: int = CLASSES) -> list[CentersModel]:
    """Of the first columns in some order, so that the larger ones have those of the smaller ones."""
    order, values = RNG.permutation(WIDTH), RNG.normal(1, 1, (CLASSES, WIDTH))
    whole = CentersModel(
        method=method,
        classes=LABELS,
        class_count=(np.arange(CLASSES) < seen) * 9.0,
        n_features=WIDTH,
        support=np.arange(WIDTH),
        evidence=NOT_JUDGED,
        centers=values,
        pooled=values[:seen].mean(axis=0),
        variances=RNG.random(WIDTH) + 0.1 if method == "mahalanobis" else None,
        covariance="within" if method == "mahalanobis" else None,
    )
    return [part(whole, np.sort(order[:k])) for k in (9, 2, 33)]


def part(whole: CentersModel, support: Any) -> CentersModel:
    variances = None if whole.variances is None else whole.variances[support]
    return replace(
        whole, support=support, centers=whole.centers[:, support], pooled=whole.pooled[support], variances=variances
    )


def check(models: Any, block: Block, kind: type) -> None:
    together = models[0].together(models)
    assert isinstance(together, kind)
    alone = [replace(model).scores(block, trusted=True) for model in models]
    np.testing.assert_array_equal(together.scores(block), np.stack(alone, axis=1))


@BLOCKS
@pytest.mark.parametrize("documents", [(20.0, 20.0, 20.0), (20.0, 0.0, 30.0)])
@pytest.mark.parametrize("method", ["multinomial", "bernoulli"])
def test_naive_bayes(method: str, documents: Any, block_of: Any) -> None:
    models = naive_bayes(method, documents)
    assert len({model.support.tobytes() for model in models if len(model.support) == 7}) > 1
    assert np.isneginf(models[0].present).any()
    check(models, block_of(ROWS), NaiveBayesTogether)


@BLOCKS
@pytest.mark.parametrize("seen", [CLASSES, 2])
@pytest.mark.parametrize("method", ["l1", "l2", "mahalanobis"])
def test_centers(method: str, seen: int, block_of: Any) -> None:
    check(centers(method, seen), block_of(ROWS), CentersTogether)


@BLOCKS
@pytest.mark.parametrize("seen", [CLASSES, 2])
@pytest.mark.parametrize("method", ["l1", "l2", "mahalanobis"])
def test_parts_of_one_model_are_what_they_are_as_models(method: str, seen: int, block_of: Any) -> None:
    models = sorted(centers(method, seen), key=lambda model: len(model.support))
    places = [np.flatnonzero(np.isin(models[-1].support, model.support)) for model in models]
    nested = NestedCenters.of(models[-1], [places[1], places[0], places[2]])
    for model, again in zip(models, [nested[1], nested[0], nested[2]], strict=True):
        np.testing.assert_array_equal(again.scores(block_of(ROWS)), model.scores(block_of(ROWS)))
    check(nested, block_of(ROWS), CentersTogether)
    check(nested[:2], block_of(ROWS), CentersTogether)


def test_parts_without_variance_are_scored_one_by_one() -> None:
    whole = replace(centers("mahalanobis")[2], variances=np.zeros(33))
    check(NestedCenters.of(whole, [np.arange(3), np.arange(7)]), sparse_block(ROWS), OneByOne)


def test_a_row_that_all_classes_rule_out_is_left_to_the_priors() -> None:
    models = [replace(model, present=np.full(model.present.shape, -np.inf)) for model in naive_bayes("multinomial")]
    check(models, sparse_block(ROWS), NaiveBayesTogether)
    scores = models[0].together(models).scores(sparse_block(ROWS))
    assert (scores == models[0].class_log_prior).all(axis=2).any()


def test_models_that_differ_in_more_are_scored_one_by_one() -> None:
    block = sparse_block(ROWS)
    apart = centers("l2")
    moved = replace(apart[1], centers=apart[1].centers + 1e-9)
    check([apart[0], moved], block, OneByOne)
    check([part(centers("l2")[2], np.array([0, 1])), part(centers("l2")[2], np.array([1, 2]))], block, OneByOne)
    fixed = centers("mahalanobis")
    check([replace(model, variances=np.zeros(len(model.support))) for model in fixed], block, OneByOne)
    whole = naive_bayes("multinomial")[3]
    assert len(whole.support) == 30
    singles = [replace(whole, support=whole.support[i : i + 1], present=whole.present[:, i : i + 1]) for i in range(9)]
    check(singles, block, OneByOne)
    check([whole, replace(whole, threshold=0.0)], block, OneByOne)
    check([replace(whole, rest=np.full(CLASSES, -1.0))], block, OneByOne)


def test_distances_that_no_number_holds_are_refused() -> None:
    rows = ROWS.copy()
    rows[4, :] = 1.7e308
    models = centers("mahalanobis")
    with pytest.raises(InputError, match="row 4: its distance"):
        models[0].together(models).scores(sparse_block(rows))
