"""The papers' movie reviews: what a handful of words can tell."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from nfs_dask import SparseBernoulliNB, SparseMultinomialNB
from tests.helpers.places import data_file

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reviews():
    """Counts and labels of the training and the test split."""
    pd = pytest.importorskip("pandas")
    frame = pd.read_parquet(data_file("imdb.parquet"))
    train, test = (frame[frame["split"] == split] for split in ("train", "test"))
    words = CountVectorizer()
    X, T = words.fit_transform(train["text"]), words.transform(test["text"])
    return X, train["label"].to_numpy(), T, test["label"].to_numpy()


def test_nine_words_are_enough_for_seventy_two_percent(reviews):
    X, y, T, truth = reviews
    model = SparseMultinomialNB(9).fit(X, y)
    assert np.count_nonzero(model.coef_) == 9
    assert model.score(T, truth) >= 0.72  # the papers: 0.702


def test_nothing_is_lost_with_few_features(reviews):
    """The papers' curve: a hundredth of the words are as good as all of them, a thousandth nearly so."""
    X, y, T, truth = reviews
    everything = MultinomialNB().fit(X, y).score(T, truth)
    for estimator in (SparseMultinomialNB(), SparseBernoulliNB(binarize=0.0)):
        accuracy = {}
        for share in (0.001, 0.01, 0.05, 0.1):
            selector = estimator.set_params(k=share).fit(X, y)
            second = MultinomialNB().fit(selector.transform(X), y)
            accuracy[share] = second.score(selector.transform(T), truth)
        assert accuracy[0.001] > everything - 0.03
        assert accuracy[0.001] < accuracy[0.01]
        assert min(accuracy[share] for share in (0.01, 0.05, 0.1)) > everything
