"""The estimators are scikit-learn's: its own checks, and its tools around them."""

from __future__ import annotations

import pickle
from inspect import signature

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from nfs_dask import ErrorRateSelector, HybridNB, SerialEngine, SparseBernoulliNB, SparseCentroid, SparseMultinomialNB

PATHS = [  # one for each path through the code
    SparseBernoulliNB(0.5, binarize=0.5),
    SparseMultinomialNB(),
    SparseCentroid(0.5),
    SparseCentroid(0.5, metric="manhattan"),
    SparseCentroid(0.5, metric="mahalanobis"),
    SparseCentroid(0.5, metric="mahalanobis", covariance="full"),
    HybridNB(k=0.5, normalize=False),
    ErrorRateSelector(search="forward", n_tokens=5),
]
OTHERS = [
    SparseBernoulliNB(binarize=0.5),
    SparseBernoulliNB("all", binarize=0.5),
    SparseMultinomialNB("all"),
    SparseMultinomialNB(0.5),
    SparseCentroid(),
    SparseCentroid("all"),
    SparseCentroid(metric="manhattan"),
    SparseCentroid("all", metric="manhattan"),
    *(
        SparseCentroid(k, metric="mahalanobis", covariance=covariance)
        for k in (10, "all", 0.5)
        for covariance in ("within", "total", "full")
        if k != 0.5 or covariance == "total"
    ),
    SparseCentroid(metric="mahalanobis", variance_floor=0.1),
    HybridNB(),
    HybridNB(prior="fixed", tables="separate"),
    ErrorRateSelector(),
    ErrorRateSelector("all"),
    ErrorRateSelector(0.5, search="best-individual"),
    ErrorRateSelector(0.5, search="plus-minus"),
    ErrorRateSelector(search="plus-minus", add=1, drop=2),
    ErrorRateSelector(0.5, search="floating"),
    ErrorRateSelector(2, search="bounded"),
]


# Before release 1.8 of scikit-learn it is what pyproject.toml says of all tests.
STRICT = {"xfail_strict": True} if "xfail_strict" in signature(parametrize_with_checks).parameters else {}


def expected_failures(estimator):
    """Checks that do not suit an estimator, and why."""
    if not isinstance(estimator, SparseCentroid):
        why = "its data have negative values, whatever the tag positive_only says"
        return dict.fromkeys(("check_decision_proba_consistency", "check_class_weight_classifiers"), why)
    one_of_two = {"check_classifiers_train": "one of its two features is not enough for the accuracy it wants"}
    return one_of_two if estimator.k == 0.5 else {}


few = pytest.mark.filterwarnings("ignore:k=1. a single feature can carry no weight", "ignore:k=10 is more than the")


@pytest.mark.filterwarnings("ignore:all labels are:nfs_dask.errors.DataWarning")
@few
@parametrize_with_checks(PATHS, expected_failed_checks=expected_failures, **STRICT)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@few
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures, **STRICT)
def test_scikit_learns_checks_of_other_parameters(estimator, check):
    check(estimator)


@pytest.fixture
def counts():
    """Documents of two classes, some words of which depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    rates = np.full((2, 60), 0.3)
    rates[0, :8], rates[1, 8:16] = 1.2, 1.2
    return sparse.csr_array(rng.poisson(rates[y])), np.array(["ham", "spam"])[y]


@pytest.mark.parametrize(
    "estimator", [SparseBernoulliNB(16, binarize=0.0), SparseMultinomialNB(16), SparseCentroid(16)]
)
def test_works_before_another_classifier(estimator, counts):
    X, y = counts
    pipeline = make_pipeline(estimator, LogisticRegression()).fit(X, y)
    assert pipeline[-1].n_features_in_ == 16
    assert set(pipeline[0].get_support(indices=True)) <= set(range(60))
    assert pipeline.score(X, y) > 0.8


def test_a_second_stage_on_all_features_is_that_stage_alone(counts):
    X, y = counts
    pipeline = make_pipeline(SparseMultinomialNB("all"), MultinomialNB()).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict_proba(X), MultinomialNB().fit(X, y).predict_proba(X))


def test_grid_search_over_k_and_alpha(counts):
    X, y = counts
    search = GridSearchCV(SparseMultinomialNB(), {"k": [2, 16, "all"], "alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.best_params_["k"] != 2
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.8


def test_clone_keeps_parameters_and_forgets_the_fit(counts):
    estimator = SparseBernoulliNB(3, alpha=0.5, binarize=0.0, always=[1], engine=SerialEngine()).fit(*counts)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(counts[0])


@pytest.mark.parametrize(
    "estimator",
    [SparseBernoulliNB(5, binarize=0.0), SparseMultinomialNB(5), SparseCentroid(5, metric="mahalanobis")],
)
def test_a_pickled_estimator_goes_on_where_it_was(estimator, counts):
    X, y = counts
    estimator = clone(estimator).fit(X[:100], y[:100])
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba(X), estimator.predict_proba(X))
    assert again.partial_fit(X[100:], y[100:]).objective_ == clone(estimator).fit(X, y).objective_


def test_the_html_of_a_fitted_estimator_computes_nothing_wide(counts, monkeypatch):
    estimator = SparseMultinomialNB(5).fit(*counts)

    def refuse(self):
        raise AssertionError("an array as wide as the data was made for a picture")

    for name in ("scores_", "coef_"):
        monkeypatch.setattr(SparseMultinomialNB, name, property(refuse))
    html = estimator._repr_html_()
    assert "SparseMultinomialNB" in html
    assert "k" in repr(estimator)


@pytest.mark.parametrize("name", ["scores_", "coef_", "intercept_", "objective_", "provenance_", "dual_point_"])
def test_nothing_is_there_before_the_fit(name):
    assert not hasattr(SparseMultinomialNB(), name)


def test_names_of_selected_features_follow_scikit_learn(counts):
    X, y = counts
    estimator = SparseMultinomialNB(3).fit(X, y)
    support = estimator.get_support(indices=True)
    assert estimator.get_feature_names_out().tolist() == [f"x{i}" for i in support]
    given = [f"word{i}" for i in range(60)]
    assert estimator.get_feature_names_out(given).tolist() == [f"word{i}" for i in support]
    with pytest.raises(ValueError, match="length equal to number of features"):
        estimator.get_feature_names_out(["a"])
    np.testing.assert_array_equal(np.flatnonzero(estimator.get_support()), support)
