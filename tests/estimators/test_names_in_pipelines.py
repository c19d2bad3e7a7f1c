"""The words that a TextVectorizer found are known to what comes after it, and to model files."""

from __future__ import annotations

import copy
import pickle

import dask.bag as db
import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs
from nfs_dask import TextVectorizer
from nfs_dask.text.column_names import names_with

TEXTS = ["green tea", "black tea", "black coffee", "more coffee"] * 3
LABELS = ["tea", "tea", "coffee", "coffee"] * 3
TOPS = {"coffee": ["coffee"], "tea": ["tea"]}
ESTIMATORS = [
    nfs.SparseMultinomialNB(k=2),
    nfs.SparseBernoulliNB(k=2, binarize=0),
    nfs.SparseCentroid(k=2),
    nfs.SparseCentroid(k=2, metric="mahalanobis", variance_floor=0.1),
    nfs.SparseCentroid(k=2, metric="manhattan"),
    nfs.HybridNB(k=2),
    nfs.ErrorRateSelector(k=2),
]


def tops(model):
    return {label: [name for name, _ in top] for label, top in model.top_features().items()}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: str(estimator)[:30])
def test_words_come_through_a_pipeline_into_model_files(estimator, tmp_path):
    pipeline = make_pipeline(TextVectorizer(), estimator).fit(TEXTS, LABELS)
    model = pipeline[-1]
    assert tops(model) == TOPS
    assert model.get_feature_names_out().tolist() == ["coffee", "tea"]
    assert tops(pickle.loads(pickle.dumps(model))) == tops(copy.deepcopy(model)) == TOPS
    model.save(tmp_path / "m")
    assert tops(nfs.load_model(tmp_path / "m")) == TOPS


def test_words_of_a_bag_and_words_after_our_selection():
    bag = db.from_sequence(TEXTS, npartitions=3)
    rows = TextVectorizer().fit(bag).transform(bag)
    model = nfs.SparseMultinomialNB(k=2).fit(rows, np.array(LABELS)[: len(TEXTS)])
    assert tops(model) == TOPS
    assert tops(nfs.SparseMultinomialNB(k=2).fit(model.transform(rows), LABELS)) == TOPS
    selected = make_pipeline(TextVectorizer(), nfs.SparseBernoulliNB(k=3, binarize=0), nfs.SparseMultinomialNB(k=2))
    assert tops(selected.fit(TEXTS, LABELS)[-1]) == TOPS


def test_features_that_are_wanted_are_named():
    pipeline = make_pipeline(TextVectorizer(), nfs.SparseMultinomialNB(k=2, always=["more"])).fit(TEXTS, LABELS)
    assert "more" in pipeline.get_feature_names_out()


def test_paths_and_added_documents_know_the_words():
    vectorizer = TextVectorizer()
    X = vectorizer.fit_transform(TEXTS)
    model = nfs.SparseMultinomialNB(k=2).partial_fit(X[:4], LABELS[:4], ["coffee", "tea"])
    assert tops(model)["tea"] == ["x4"]  # some of the rows are a matrix of scipy's making
    assert (
        tops(nfs.SparseMultinomialNB(k=2).partial_fit(X, LABELS, ["coffee", "tea"]).partial_fit(X[:4], LABELS[:4]))
        == TOPS
    )
    path = nfs.path(vectorizer.transform(TEXTS), "multinomial", [2], y=LABELS)
    assert path.names(2) == ["coffee", "tea"]


def test_names_are_not_those_of_other_columns():
    X = TextVectorizer().fit_transform(TEXTS)
    assert names_with(X) is not None
    assert names_with(X[:, :2]) is None
    assert names_with(sparse.hstack([X, X])) is None
    assert names_with(TfidfTransformer().fit_transform(X)) is None
    X.resize((len(TEXTS), 3))
    assert names_with(X) is None
    assert names_with(TextVectorizer(hashed=4).fit_transform(TEXTS)) is None


def test_names_of_frames_are_theirs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    assert names_with(frame) == ["a", "b", "c"]
    assert names_with(frame.to_numpy()) is None
