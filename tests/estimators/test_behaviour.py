"""Parameters, refusals and special cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask import DataWarning, InputError, SparseBernoulliNB, SparseMultinomialNB

BOTH = [SparseBernoulliNB(5, binarize=0.0), SparseMultinomialNB(5)]
either = pytest.mark.parametrize("estimator", BOTH)

RNG = np.random.default_rng(0)
Y = np.append([0, 1], RNG.integers(2, size=58))
X = RNG.poisson(RNG.gamma(0.5, size=(2, 20))[Y])
NAMES = [f"w{i}" for i in range(20)]


def new(estimator, **parameters):
    return type(estimator)(**{**estimator.get_params(), **parameters})


@either
@pytest.mark.parametrize(("k", "n"), [(1, 1), (7, 7), (0.25, 5), (0.001, 1), ("all", 20), (np.int64(3), 3)])
@pytest.mark.filterwarnings("ignore:k=1")
def test_k_counts_features(estimator, k, n):
    assert len(new(estimator, k=k).fit(X, Y).get_support(indices=True)) == n


@either
def test_k_beyond_all_features_warns_and_is_all(estimator):
    with pytest.warns(DataWarning, match="k=21 is more than the 20 features there are; all are kept") as caught:
        model = new(estimator, k=21).fit(X, Y)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.predict_proba(X), new(estimator, k="all").fit(X, Y).predict_proba(X))


def test_a_single_multinomial_feature_is_warned_about():
    with pytest.warns(DataWarning, match="a single feature can carry no weight"):
        model = SparseMultinomialNB(1).fit(X, Y)
    np.testing.assert_allclose(model.coef_, 0, atol=1e-14)


@either
def test_features_absent_from_training_are_left_out_until_all_are_kept(estimator):
    wide = np.hstack([np.zeros((60, 30), int), X])
    assert new(estimator, k=45).fit(wide, Y).get_support(indices=True).min() >= 30
    assert len(new(estimator, k="all").fit(wide, Y).get_support(indices=True)) == 50


@either
def test_forced_features_count_in_k(estimator):
    free = new(estimator, k=3).fit(X, Y)
    worst = [int(i) for i in np.argsort(free.scores_)[:2]]
    model = new(estimator, k=3, always=worst).fit(X, Y)
    support = model.get_support(indices=True)
    assert len(support) == 3
    assert set(worst) < set(support)
    assert model.objective_ < free.objective_
    named = new(estimator, k=3, always=[NAMES[i] for i in worst]).fit(pd.DataFrame(X, columns=NAMES), Y)
    np.testing.assert_array_equal(named.get_support(indices=True), support)


@either
@pytest.mark.parametrize(
    ("always", "message"),
    [
        (["w99"], "always='w99' is not the name of a feature"),
        ("w1", r"always='w1' is one name; give a list"),
        (1, "always=1 is no list; give a list of names or indices"),
        ([0.5], r"always holds 0.5; give names or indices"),
        ([True], r"always holds True; give names or indices"),
        ([20], "always names feature 20, but there are features 0 to 19"),
        ([0, 1, 2, 3, 4, 5], "always forces 6 features into a support of k=5"),
    ],
)
def test_what_cannot_be_forced(estimator, always, message):
    with pytest.raises(InputError, match=message):
        new(estimator, always=always).fit(pd.DataFrame(X, columns=NAMES), Y)


@either
def test_features_without_names_go_by_those_that_are_shown(estimator):
    with pytest.raises(
        InputError, match="always='w1' is not a feature; as they have no names, they are called 'x0' to"
    ):
        new(estimator, always=["w1"]).fit(X, Y)
    assert 1 in new(estimator, always=["x1"]).fit(X, Y).get_support(indices=True)


@either
@pytest.mark.parametrize("alpha", [-1, np.nan, np.inf, "1", None, True, [1.0, 2.0]])
def test_alpha_is_one_number(estimator, alpha):
    with pytest.raises(InputError, match="alpha=.*; give one finite number of 0 or more"):
        new(estimator, alpha=alpha).fit(X, Y)


@either
@pytest.mark.parametrize("prior", [[1.0], [0.5, -0.5], [0, 0], [0.5, np.nan]])
def test_priors_are_one_probability_for_each_class(estimator, prior):
    with pytest.raises(InputError, match="class_prior.*give"):
        new(estimator, class_prior=prior).fit(X, Y)


@either
def test_a_prior_of_zero_rules_a_class_out(estimator):
    model = new(estimator, class_prior=[1, 0]).fit(X, Y)
    assert set(model.predict(X)) == {0}
    with pytest.raises(InputError, match="gives 0 to every class that has documents"):
        new(estimator, class_prior=[1, 0]).partial_fit(X[Y == 1], Y[Y == 1], classes=[0, 1])


@pytest.mark.parametrize("binarize", [-1.0, np.nan, "0", True])
def test_thresholds_are_zero_or_more(binarize):
    with pytest.raises(InputError, match="binarize=.*; give a finite threshold of 0 or more"):
        SparseBernoulliNB(5, binarize=binarize).fit(X, Y)


# Binary data


def test_data_that_are_not_binary_are_refused_with_the_call_that_fixes_it(tmp_path):
    two = int(np.argmax(X.max(axis=1) > 1))
    where = rf"value [2-9] in row {two}, column .*with binarize=0.0 every value"
    with pytest.raises(InputError, match=where):
        SparseBernoulliNB(5, binarize=None).fit(X, Y)
    with pytest.raises(InputError, match=where):
        SparseBernoulliNB(5, binarize=None).fit(X > 0, Y).predict(X)
    with pytest.raises(InputError, match="value 0.5 in row"):
        SparseBernoulliNB(5, binarize=None).fit(np.where(X > 0, [[0.5], [1.5]] * 30, 0), Y)
    store = nfs.ingest(X, tmp_path / "counts.zarr", labels=Y)
    with pytest.raises(InputError, match=r"the data hold count values.*with binarize=0.0 every value"):
        SparseBernoulliNB(5, binarize=None).fit(store)
    with pytest.raises(InputError, match="value [2-9] in row"):
        SparseBernoulliNB(5, binarize=None).fit(X > 0, Y).predict(store)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_binary_data_of_any_type_are_taken(dtype, tmp_path):
    B = X > 0
    expected = SparseBernoulliNB(5, binarize=0.0).fit(X, Y)
    model = SparseBernoulliNB(5).fit(B.astype(dtype), Y)
    np.testing.assert_array_equal(model.predict_proba(B.astype(dtype)), expected.predict_proba(X))
    store = nfs.ingest(B.astype(dtype), tmp_path / f"{dtype.__name__}.zarr", labels=Y)
    np.testing.assert_array_equal(SparseBernoulliNB(5).fit(store).predict_proba(store), expected.predict_proba(X))


def test_the_threshold_decides_what_is_present():
    low, high = (SparseBernoulliNB("all", binarize=b).fit(X, Y) for b in (0.0, 1.0))
    np.testing.assert_array_equal(high.predict_proba(X), SparseBernoulliNB("all").fit(X > 1, Y).predict_proba(X > 1))
    assert not np.array_equal(low.predict_proba(X), high.predict_proba(X))


def test_repeated_columns_of_a_row_are_one_entry_when_scored():
    model = SparseBernoulliNB("all", binarize=1.0).fit(X, Y)
    repeated = sparse.csr_array((np.ones(2), [4, 4], [0, 2]), shape=(1, 20))
    once = sparse.csr_array((np.array([2.0]), [4], [0, 1]), shape=(1, 20))
    np.testing.assert_array_equal(model.predict_proba(repeated), model.predict_proba(once))


# No smoothing

TINY = np.array([[2, 0, 1, 0], [1, 0, 1, 0], [0, 3, 1, 0], [0, 1, 2, 0]])


@pytest.mark.parametrize(
    "estimator", [SparseBernoulliNB("all", alpha=0, binarize=0.0), SparseMultinomialNB("all", alpha=0)]
)
def test_without_smoothing_the_impossible_rules_out(estimator):
    model = new(estimator).fit(TINY, [0, 0, 1, 1])
    rows = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 5], [1, 1, 1, 0]])
    with np.errstate(all="raise"):
        proba = model.predict_proba(rows)
    np.testing.assert_array_equal(proba[0], [1, 0])  # feature 1 never was in class 0, feature 0 never in class 1
    np.testing.assert_array_equal(proba[1], [0, 1])
    np.testing.assert_array_equal(proba[2], proba[0])  # a feature nobody has seen says nothing
    np.testing.assert_allclose(proba[3], [0.5, 0.5])  # both are ruled out: the priors decide
    assert model.predict(rows).tolist() == [0, 1, 0, 0]
    assert model.decision_function(rows)[:2].tolist() == [-np.inf, np.inf]
    assert not np.isnan(model.coef_).any()
    assert model.coef_[0, 3] == 0


def test_without_smoothing_a_feature_of_all_documents_of_a_class_rules_out_others():
    model = SparseBernoulliNB("all", alpha=0).fit([[1, 1], [1, 0], [0, 1], [1, 0]], [0, 0, 1, 1])
    np.testing.assert_array_equal(model.predict_proba([[0, 0]]), [[0, 1]])


def test_a_class_without_counts_on_the_support_is_like_all_others_together():
    model = SparseMultinomialNB(2, alpha=0, always=[0, 1]).fit([[0, 0, 3], [2, 1, 1], [1, 2, 1]], [0, 1, 1])
    np.testing.assert_allclose(np.exp(model.model_.present[0]), [0.3 * 10 / 11, 0.3 * 10 / 11])


# Labels and classes


@either
@pytest.mark.parametrize("labels", [["ham", "spam"], [False, True], [-1, 7], [1.0, 2.0]])
def test_labels_of_any_type_come_back(estimator, labels):
    y = np.array(labels)[Y]
    model = new(estimator).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert model.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(model.predict(X) == labels[1], new(estimator).fit(X, Y).predict(X) == 1)


@either
def test_a_fit_needs_a_label_for_each_document(estimator):
    with pytest.raises(InputError, match="label missing"):
        new(estimator).fit(X, ["a", "b", None] * 20)


@either
def test_weights_are_repetitions(estimator):
    weights = np.random.default_rng(1).integers(0, 4, 60)
    repeated = new(estimator).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    weighted = new(estimator).fit(X, Y, sample_weight=weights)
    assert weighted.objective_ == repeated.objective_
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


# What a fitted estimator tells


@either
def test_top_features_speak_for_their_class(estimator):
    model = new(estimator).fit(pd.DataFrame(X, columns=NAMES), np.array(["ham", "spam"])[Y])
    tops = model.top_features(3)
    coef = dict(zip(model.get_feature_names_out(), model.coef_[0, model.get_support()], strict=True))
    assert list(tops) == ["ham", "spam"]
    for label, sign in (("ham", -1), ("spam", 1)):
        best = sorted((name for name in coef if sign * coef[name] > 0), key=lambda name: -sign * coef[name])[:3]
        assert [name for name, _ in tops[label]] == best
        assert [weight for _, weight in tops[label]] == pytest.approx([sign * coef[name] for name in best])


@either
def test_provenance_says_where_a_model_comes_from(estimator):
    provenance = new(estimator).fit(X, Y).provenance_
    assert provenance["rows"] == 60
    assert provenance["versions"]["nfs_dask"] == nfs.__version__
    assert provenance["seconds"]["counts"] >= 0
    assert provenance["fingerprint"] is None  # of data in memory
    assert provenance["plan"] is None  # as nothing is planned of so little
    assert not provenance["reused"]
    assert new(estimator, engine=nfs.SerialEngine()).fit(X, Y).provenance_["plan"]["tasks"] == 1


@either
def test_labels_of_the_callers_for_a_dataset(estimator, tmp_path):
    store = nfs.ingest(X, tmp_path / "store.zarr")
    with pytest.raises(InputError, match="has no labels"):
        new(estimator).fit(store)
    model = new(estimator).fit(store, Y, sample_weight=Y + 1)
    expected = new(estimator).fit(X, Y, sample_weight=Y + 1)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.score(store, Y) == expected.score(X, Y)
