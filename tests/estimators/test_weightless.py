"""Classes whose documents all have weight zero, as resampling leaves them, and data of a single class."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs
from nfs_dask import (
    ErrorRateSelector,
    HybridNB,
    InputError,
    SerialEngine,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
    load_model,
)
from tests.helpers.grids import each_once

ESTIMATORS = {
    "multinomial": SparseMultinomialNB(4),
    "all": SparseMultinomialNB("all"),
    "unsmoothed": SparseMultinomialNB(4, alpha=0),
    "bernoulli": SparseBernoulliNB(4, binarize=0.0),
    "euclidean": SparseCentroid(4),
    "within": SparseCentroid(4, metric="mahalanobis"),
    "total": SparseCentroid(4, metric="mahalanobis", covariance="total"),
    "full": SparseCentroid(4, metric="mahalanobis", covariance="full"),
    "medians": SparseCentroid(4, metric="manhattan"),
    "hybrid": HybridNB(k=4),
    "hybrid sums": HybridNB(normalize=False),
    "hybrid fixed": HybridNB(prior="fixed", tables="separate", regions=2),
    "ranked": ErrorRateSelector(4),
    "forward": ErrorRateSelector(4, search="forward", balanced=False),
}
WITH_PROBABILITIES = {name for name, one in ESTIMATORS.items() if hasattr(one, "predict_proba")}
RNG = np.random.default_rng(0)
Y = np.append(np.arange(3), RNG.integers(3, size=87))
X = RNG.poisson(RNG.gamma(1.0, size=(3, 10))[Y])

ONE_CLASS = pytest.mark.filterwarnings("ignore:all labels are:nfs_dask.errors.DataWarning")
each = pytest.mark.parametrize("name", ESTIMATORS)


def new(name):
    return clone(ESTIMATORS[name])


@ONE_CLASS
@pytest.mark.parametrize(("gone", "name"), each_once([[0], [1], [2], [0, 1], [1, 2]], ESTIMATORS))
def test_a_class_without_weight_is_as_if_it_were_not_there(name, gone):
    there = ~np.isin(Y, gone)
    kept = np.setdiff1d(np.arange(3), gone)
    model = new(name).fit(X, Y, sample_weight=there.astype(float))
    alone = new(name).fit(X[there], Y[there])
    np.testing.assert_array_equal(model.classes_, np.arange(3))
    assert (model.class_count_ == np.bincount(Y[there], minlength=3)).all()
    np.testing.assert_array_equal(model.get_support(), alone.get_support())
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-12 if name == "full" else 0)
    scores, expected = model.decision_function(X), alone.decision_function(X)
    assert np.isneginf(scores[:, gone]).all()
    if len(kept) == 2:
        np.testing.assert_allclose(scores[:, kept[1]] - scores[:, kept[0]], expected, atol=1e-9)
    else:
        np.testing.assert_allclose(scores[:, kept], expected, atol=1e-9)
    if name in WITH_PROBABILITIES:
        np.testing.assert_allclose(model.predict_proba(X)[:, kept], alone.predict_proba(X), atol=1e-12)
        assert not model.predict_proba(X)[:, gone].any()
    if hasattr(alone, "scores_"):
        np.testing.assert_allclose(model.scores_, alone.scores_)
    tops, expected = model.top_features(3), alone.top_features(3)
    assert all(tops[label] == [] for label in gone)
    for label in kept:
        assert [pair[0] for pair in tops[label]] == [pair[0] for pair in expected[label]]


@each
def test_it_is_what_partial_fit_makes_of_a_class_that_was_not_seen(name):
    model = new(name)
    if not hasattr(model, "partial_fit"):
        pytest.skip("its sums cannot be added to")
    model.fit(X, Y, sample_weight=(Y != 1).astype(int))
    added = new(name).partial_fit(X[Y != 1], Y[Y != 1], classes=[0, 1, 2])
    np.testing.assert_allclose(model.decision_function(X), added.decision_function(X), atol=1e-12)
    whole = model.partial_fit(X[Y == 1], Y[Y == 1])
    np.testing.assert_allclose(whole.decision_function(X), new(name).fit(X, Y).decision_function(X), atol=1e-9)


@each
@pytest.mark.parametrize("kept", [0, 1])
def test_one_of_two_classes_without_weight(name, kept):
    y = Y > 0
    model = new(name).fit(X, y, sample_weight=(y == bool(kept)).astype(float))
    assert (model.predict(X) == bool(kept)).all()
    assert (model.decision_function(X) == (np.inf if kept else -np.inf)).all()
    if name in WITH_PROBABILITIES:
        assert (model.predict_proba(X) == [1 - kept, kept]).all()
    if hasattr(model, "coef_"):
        assert not model.coef_.any()


@each
@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_all_weights_zero_are_refused(name, labels):
    with pytest.raises(InputError, match="all documents have weight zero"):
        new(name).fit(X, np.resize(labels, 90), sample_weight=np.zeros(90))


@ONE_CLASS
@each
def test_a_single_class_is_fitted_as_scikit_learns_naive_bayes_does(name, tmp_path):
    y = np.full(90, "tea")
    theirs = MultinomialNB().fit(X, y)
    model = new(name).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    assert model.decision_function(X).shape == (90, 1)
    if name in WITH_PROBABILITIES:
        np.testing.assert_array_equal(model.predict_proba(X), theirs.predict_proba(X))
    assert model.top_features() == {"tea": []}
    assert model.transform(X).shape == (90, model.get_support().sum())
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), y)
    for other in (da.from_array(X, chunks=(30, -1)), sparse.csc_array(X)):
        assert new(name).set_params(engine=SerialEngine()).fit(other, y).classes_.tolist() == ["tea"]


@pytest.mark.parametrize("name", ["multinomial", "medians", "hybrid", "hybrid fixed"])
def test_stores_and_chunks_of_classes_without_weight(name, tmp_path):
    weights = (Y != 1).astype(int)
    expected = new(name).fit(X, Y, sample_weight=weights).decision_function(X)
    lazy = new(name).set_params(engine=SerialEngine()).fit(da.from_array(X, chunks=(30, -1)), Y, sample_weight=weights)
    np.testing.assert_allclose(lazy.decision_function(X), expected, atol=1e-9)
    store = nfs.ingest(X, tmp_path / "store.zarr", labels=Y)
    np.testing.assert_allclose(new(name).fit(store, Y, weights).decision_function(X), expected, atol=1e-9)


def test_a_path_passes_over_classes_without_weight():
    for method in ("multinomial", "bernoulli", "l2", "l1"):
        given = {"binarize": 0.0} if method == "bernoulli" else {}
        whole = nfs.path(X, method, [2, 4], y=Y, sample_weight=(Y != 1).astype(int), **given)
        alone = nfs.path(X[Y != 1], method, [2, 4], y=Y[Y != 1], **given)
        assert whole.objective.tolist() == alone.objective.tolist()


# Resampling and other ensembles

RARE = np.where(np.arange(90) < 2, 2, Y % 2)  # two documents of class 2


@each
def test_ensembles_over_a_rare_class(name):
    if name == "hybrid fixed":
        pytest.skip("refuses classes of one document, without which they have no prior")
    estimator = new(name)
    bagged = BaggingClassifier(estimator, n_estimators=12, max_samples=0.3, random_state=0).fit(X, RARE)
    assert any((one.class_count_ == 0).any() for one in bagged.estimators_ if len(one.classes_) == 3) or any(
        len(one.classes_) < 3 for one in bagged.estimators_
    )
    assert (bagged.predict(X) == RARE).mean() > 0.4
    assert np.isfinite(bagged.predict_proba(X)).all()
    boosted = AdaBoostClassifier(estimator, n_estimators=3, random_state=0)
    if name == "full":
        return  # the second round gives some documents so much weight that no covariance is left
    assert (boosted.fit(X, RARE).predict(X) == RARE).mean() > 0.3


@each
@pytest.mark.filterwarnings("ignore:The least populated class in y")
def test_other_ways_to_combine_classifiers(name):
    with_logistic = [("ours", new(name)), ("logistic", LogisticRegression(max_iter=1000))]
    hard = VotingClassifier(with_logistic).fit(X, Y, sample_weight=np.ones(90))
    assert (hard.predict(X) == Y).mean() > 0.4
    assert (StackingClassifier(with_logistic, with_logistic[1][1], cv=3).fit(X, Y).predict(X) == Y).mean() > 0.4
    if name != "unsmoothed":  # its scores are infinite, which no calibration takes
        calibrated = CalibratedClassifierCV(new(name), cv=3).fit(X, Y, sample_weight=np.ones(90))
        assert np.isfinite(calibrated.predict_proba(X)).all()
    search = GridSearchCV(new(name), {"k": [3, 5]}, cv=3).fit(X, Y, sample_weight=np.ones(90))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert cross_val_predict(new(name), X, Y, cv=3, method="decision_function").shape == (90, 3)
    assert OneVsRestClassifier(new(name)).fit(X, Y).predict(X).shape == (90,)
    both = MultiOutputClassifier(new(name)).fit(X, np.stack([Y, Y > 0], axis=1), sample_weight=np.ones(90))
    assert both.predict(X).shape == (90, 2)


@each
def test_weights_pass_through_pipelines_and_metadata_routing(name):
    from sklearn import config_context

    weights = (Y != 1).astype(int)
    step = type(new(name)).__name__.lower()
    expected = new(name).fit(X, Y, sample_weight=weights)
    by_name = make_pipeline(new(name)).fit(X, Y, **{f"{step}__sample_weight": weights})
    np.testing.assert_array_equal(by_name.predict(X), expected.predict(X))
    with config_context(enable_metadata_routing=True):
        routed = new(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(routed).fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(pipeline.predict(X), expected.predict(X))
        assert pipeline.score(X, Y, sample_weight=weights) == expected.score(X, Y, sample_weight=weights)
        bagged = BaggingClassifier(clone(routed), n_estimators=3, random_state=0).fit(X, Y, sample_weight=weights)
        assert 1 not in bagged.predict(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            first = make_pipeline(clone(routed), LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True))
            assert first.fit(X, Y, sample_weight=weights + 1).predict(X).shape == (90,)
