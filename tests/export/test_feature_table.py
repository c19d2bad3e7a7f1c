"""Tables of the selected features agree with what estimators say, and with the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs
from nfs_dask import TextVectorizer
from nfs_dask.export.feature_table import ranks
from tests.helpers.sql_cases import hard_counts, named

X, Y = hard_counts(200, ["a", "b"], 1)
THREE = hard_counts(200, [1, 2, 3], 2)


def test_naive_bayes_says_gains_weights_probabilities_and_counts():
    model = nfs.SparseMultinomialNB(k=8).fit(named(X), Y)
    frame, support = model.to_frame(), model.get_support(indices=True)
    assert frame.columns.tolist() == [
        "feature", "column", "gain", "rank", "weight_a", "weight_b", "log_probability_a", "log_probability_b",
        "count_a", "count_b",
    ]  # fmt: skip
    assert frame["feature"].tolist() == model.get_feature_names_out().tolist()
    assert frame["column"].tolist() == support.tolist()
    np.testing.assert_array_equal(frame["gain"], model.scores_[support])
    np.testing.assert_array_equal(frame["count_b"], X[Y == "b"].sum(axis=0)[support])
    np.testing.assert_array_equal(frame["log_probability_a"], model.feature_log_prob_[0])
    np.testing.assert_allclose(frame["weight_b"], model.coef_[0, support], rtol=1e-12)
    for label in "ab":
        tops = dict(model.top_features(8)[label])
        above = frame[frame[f"weight_{label}"] > 0]
        assert dict(zip(above["feature"], above[f"weight_{label}"], strict=True)) == tops


def test_ranks_are_by_gain_and_ties_go_to_the_lower_column():
    assert ranks(np.array([1.0, 3.0, 1.0, 3.0, 0.0])).tolist() == [3, 1, 4, 2, 5]


def test_bernoulli_counts_documents_of_several_classes():
    model = nfs.SparseBernoulliNB(k=5, binarize=0).fit(*THREE)
    frame, support = model.to_frame(), model.get_support(indices=True)
    for label in (1, 2, 3):
        np.testing.assert_array_equal(
            frame[f"documents_{label}"], (THREE[0][THREE[1] == label] > 0).sum(axis=0)[support]
        )


def test_centers_say_where_they_are():
    model = nfs.SparseCentroid(k=5, metric="mahalanobis").fit(X, Y)
    frame, support = model.to_frame(), model.get_support(indices=True)
    assert frame["feature"].tolist() == [f"x{column}" for column in support]
    np.testing.assert_allclose(frame["center_a"], X[Y == "a"].mean(axis=0)[support])
    np.testing.assert_array_equal(frame["common_center"], model.common_center_)
    np.testing.assert_allclose(frame["variance"], model.model_.variances)
    medians = nfs.SparseCentroid(k=5, metric="manhattan").fit(X, Y)
    np.testing.assert_allclose(medians.to_frame()["center_b"], np.median(X[Y == "b"], axis=0)[medians.get_support()])
    assert "variance" not in medians.to_frame() and medians.to_frame()["rank"].max() == 5


@pytest.mark.parametrize(
    "estimator",
    [
        nfs.SparseMultinomialNB(k=6),
        nfs.SparseBernoulliNB(k=6, binarize=0),
        nfs.SparseCentroid(k=6),
        nfs.SparseCentroid(k=6, metric="mahalanobis", covariance="full", variance_floor=0.1),
        nfs.SparseCentroid(k=6, metric="manhattan"),
        nfs.HybridNB(k=2, regions=3),
        nfs.ErrorRateSelector(k=6),
    ],
    ids=lambda estimator: str(estimator)[:40],
)
def test_what_a_model_file_lacks_is_left_out(estimator, tmp_path):
    estimator.fit(named(X), Y)
    frame = estimator.to_frame()
    estimator.save(tmp_path / "m")
    loaded = nfs.load_model(tmp_path / "m").to_frame()
    lacking = [name for name in frame if name in ("gain", "rank") or name.startswith(("count_", "documents_"))]
    pd.testing.assert_frame_equal(loaded, frame.drop(columns=lacking))
    assert ("gain" in frame) == (not isinstance(estimator, nfs.HybridNB))


def test_words_of_a_pipeline_and_of_regions_have_their_names():
    texts = ["green tea", "black tea", "black coffee", "more coffee"]
    pipeline = make_pipeline(TextVectorizer(), nfs.SparseMultinomialNB(k=2)).fit(texts, [0, 0, 1, 1])
    assert pipeline[-1].to_frame()["feature"].tolist() == ["coffee", "tea"]
    frame = nfs.HybridNB(regions=3, k=2).fit(named(X), Y).to_frame()
    assert len(frame) == 6 and frame["log_probability_a"][:2].tolist() == frame["log_probability_a"][2:4].tolist()


def test_a_table_is_as_long_as_the_selection():
    wide = sparse.random_array((40, 500_000), density=1e-5, rng=np.random.default_rng(0), format="csr")
    wide.data[:] = 1
    assert nfs.SparseMultinomialNB(k=7).fit(wide, ["a", "b"] * 20).to_frame().shape == (7, 10)


def test_classes_without_documents_have_no_center():
    model = nfs.SparseCentroid(k=3).partial_fit(X, Y, classes=["a", "b", "c"])
    assert model.to_frame()["center_c"].isna().all()
