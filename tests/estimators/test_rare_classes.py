"""A few mistyped labels: words of the other classes stay theirs, and somebody is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.errors import DataWarning
from nfs_dask.models.model import of_others

NAMES = ("negative", "positive", "postive")
COUNTS = (2000, 1997, 3)
ESTIMATORS = {
    "multinomial": lambda: nfs.SparseMultinomialNB(k=5),
    "bernoulli": lambda: nfs.SparseBernoulliNB(k=5, binarize=0),
    "l2": lambda: nfs.SparseCentroid(k=5),
    "mahalanobis": lambda: nfs.SparseCentroid(k=5, metric="mahalanobis"),
    "l1": lambda: nfs.SparseCentroid(k=5, metric="manhattan"),
    "hybrid": lambda: nfs.HybridNB(),
}
all_methods = pytest.mark.parametrize("method", ESTIMATORS)


def reviews():
    """Documents of frequent words, and of one that tells the class; the mistyped ones have no more than "good"."""
    rng = np.random.default_rng(0)
    y = np.repeat(NAMES, COUNTS)
    rates = {"negative": [4, 4, 3, 0.3, 2.5], "positive": [4, 4, 3, 2.5, 0.3], "postive": [0, 0, 0, 4, 0]}
    return rng.poisson([rates[label] for label in y]), y


def fitted(method):
    X, y = reviews()
    model = ESTIMATORS[method]()
    with pytest.warns(DataWarning, match=r"'postive' \(3, spelled nearly like 'positive'\)"):
        model.fit(X, y)
    return model


@all_methods
def test_margins_are_averages_over_the_documents_of_the_others(method):
    model = fitted(method).model_
    margins = model.margins()
    per_class = {"multinomial": lambda: model.present, "bernoulli": lambda: model.present - model.absent}
    per_class |= {"hybrid": model._worth} if method == "hybrid" else {}
    of = per_class.get(method, lambda: model.centers / np.sqrt(1 if model.variances is None else model.variances))()
    for c in range(3):
        others = [other for other in range(3) if other != c]
        average = np.average(of[others], axis=0, weights=np.array(COUNTS)[others])
        np.testing.assert_allclose(margins[c], of[c] - average, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["multinomial", "bernoulli", "hybrid"])
def test_the_word_of_a_class_comes_first_in_spite_of_mistyped_labels(method):
    model = fitted(method)
    tops = {label: dict(top) for label, top in model.top_features().items()}
    assert (next(iter(tops["negative"])), next(iter(tops["positive"]))) == ("x4", "x3")
    for label, word in (("negative", "x4"), ("positive", "x3")):
        assert all(weight < tops[label][word] / 10 for name, weight in tops[label].items() if name != word)


@all_methods
def test_two_classes_and_classes_of_many_documents_are_not_told_of(method):
    X, y = reviews()
    two = np.where(y == "postive", "postive", "positive")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ESTIMATORS[method]().fit(X, two)
        ESTIMATORS[method]().fit(X, np.arange(len(y)) % 5)


def test_a_long_tail_is_told_of_shortly():
    y = np.concatenate([np.repeat([100, 200], 2000), np.arange(8)])
    with pytest.warns(DataWarning, match=r"0 \(1\), 1 \(1\), 2 \(1\), 3 \(1\), 4 \(1\), and 3 more; correct labels"):
        nfs.SparseBernoulliNB(k=1).fit(np.ones((len(y), 2)), y)


def test_sums_of_others_lose_no_digit_of_a_small_class():
    values, weights = np.array([[1.0], [3.0], [1e6]]), np.array([1.0, 1.0, 1e16])
    found, total = of_others(values, weights)
    assert (found / total)[2, 0] == 2.0
    found, total = of_others(values, np.array([5e-324, 1.0, 1e308]))
    assert np.isfinite(found / total).all()
