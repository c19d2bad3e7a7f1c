"""Explanations of centers: values speak for the nearer center, and all of them make the decision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import nfs_dask as nfs

RNG = np.random.default_rng(0)
METRICS = ("euclidean", "manhattan", "mahalanobis")


def genes(n_classes):
    """Values far from 0, and zeros that say as much as others."""
    y = RNG.integers(n_classes, size=90)
    X = 1e4 + RNG.normal(size=(90, 8)) * 100 + np.where(np.arange(8) < 4, 120 * y[:, None], 0)
    X[:, 2] = np.where(RNG.random(90) < 0.8, (y == 1) * 50.0, 0)
    return X, np.array(["ham", "spam", "eggs"])[y]


def distances(model, x):
    """(C, k) of a row to each center, feature by feature, by the definitions."""
    off = np.abs(x[model.get_support()] - model.centers_)
    if model.metric == "manhattan":
        return off
    return off**2 / (model.model_.variances if model.metric == "mahalanobis" else 1)


@pytest.mark.parametrize("metric", METRICS)
def test_contributions_of_two_classes_are_the_decision(metric):
    X, y = genes(2)
    model = nfs.SparseCentroid(5, metric=metric, always=[2]).fit(X, y)
    for rows in (X, sparse.csr_array(X)):
        explanation = model.explain(rows)
        np.testing.assert_array_equal(explanation.base, 0)
        frame = explanation.to_frame()
        assert len(frame) == 90 * 5
        np.testing.assert_allclose(
            frame.groupby("document")["contribution"].sum(), model.decision_function(X), rtol=1e-8, atol=1e-8
        )
        assert explanation.predicted.tolist() == model.predict(X).tolist()
        for document in (0, 17, 41):
            off = distances(model, X[document])
            names = model.get_feature_names_out().tolist()
            expected = dict(zip(names, off[0] - off[1], strict=True))
            for feature, value, contribution in explanation.top(document, 5):
                assert value == X[document, int(feature[1:])]
                assert contribution == pytest.approx(expected[feature], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("metric", METRICS)
def test_contributions_to_more_classes_are_beside_the_mean_of_the_centers(metric):
    X, y = genes(3)
    model = nfs.SparseCentroid(5, metric=metric).fit(X, y)
    explanation, scores = model.explain(X, range(20)), model.decision_function(X)
    frame = explanation.to_frame()
    sums = frame.pivot_table(index="document", columns="class", values="contribution", aggfunc="sum")
    np.testing.assert_allclose(sums + explanation.base, scores[:20], rtol=1e-8, atol=1e-8)
    middle = X[0].copy()
    middle[model.get_support()] = model.centers_.mean(axis=0)
    np.testing.assert_allclose(explanation.base[0], model.decision_function(middle[None])[0], rtol=1e-8)
    np.testing.assert_allclose(model.explain(middle[None]).to_frame()["contribution"], 0, atol=1e-8)


def test_pages_say_what_the_base_is():
    X, y = genes(2)
    explanation = nfs.SparseCentroid(3).fit(X, y).explain(X[:1])
    for shown in (" ".join(str(explanation).split()), explanation.to_html()):
        assert "= +0 midway between the centers, " in shown and "by 3 features" in shown
        assert "without features" not in shown
    more = nfs.SparseCentroid(3).fit(*genes(3)).explain(X[:1])
    assert "at the mean of the centers" in " ".join(str(more).split())


def test_as_many_numbers_as_are_not_held_are_refused():
    rows = sparse.random_array((2000, 40_000), density=1e-4, rng=RNG, format="csr")
    model = nfs.SparseCentroid("all").fit(rows, np.arange(2000) % 2)
    with pytest.raises(ValueError, match="80,000,000 contributions"):
        model.explain(rows)
    assert len(model.explain(rows, range(10)).to_frame()) == 400_000


def test_absent_words_do_not_fade_the_marks(tmp_path):
    texts = ["green tea", "black tea", "black coffee", "black coffee coffee"]
    store = nfs.ingest(texts, tmp_path / "store.zarr", labels=["tea", "tea", "coffee", "coffee"])
    page = nfs.SparseCentroid("all").fit(store).explain(["black"]).to_html()
    assert "nfs-veil-8" in page.partition("<div")[2]
