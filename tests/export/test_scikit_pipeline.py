"""Pipelines of scikit-learn alone say what the models say, also where this package cannot be imported."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import nfs_dask as nfs
from nfs_dask import InputError, TextVectorizer
from tests.helpers.sql_cases import hard_counts, named, sql_cases

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

CASES = [case for case in sql_cases() if "zero probabilities" not in case.name]
CENTERED = np.array([2.5, -1.0, 1e3, 0.0, 0.3])


def real_rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 5)) + np.eye(3, 5)[y] * 2 + CENTERED, y


def same(pipeline, model, X, decisions=1.0):
    np.testing.assert_array_equal(pipeline.predict(X), model.predict(X))
    assert hasattr(pipeline, "predict_proba") == model.model_.has_probabilities
    if model.model_.has_probabilities:
        np.testing.assert_allclose(pipeline.predict_proba(X), model.predict_proba(X), atol=1e-13)
    if hasattr(pipeline, "decision_function"):
        np.testing.assert_allclose(pipeline.decision_function(X) / decisions, model.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("container", [named, lambda X: np.asarray(named(X)), sparse.csr_matrix, sparse.csc_array])
def test_the_same_classes_probabilities_and_decisions(case, container):
    pipeline = case.model.to_sklearn()
    check_is_fitted(pipeline)
    same(pipeline, case.model, container(case.X), 0.5 if case.name == "mahalanobis" else 1.0)


def test_classifiers_are_those_of_the_methods():
    found = {case.name: type(case.model.to_sklearn()[-1]).__name__ for case in CASES}
    assert found["multinomial"] == "MultinomialNB" and found["bernoulli"] == "BernoulliNB"
    assert found["l2"] == "LinearSVC" and found["mahalanobis"] == found["hybrid"] == "LogisticRegression"
    assert found["l1"] == "NearestCentroid" and found["error of all"] == "MultinomialNB"


@pytest.mark.parametrize(
    "estimator",
    [
        nfs.SparseCentroid(k=3),
        nfs.SparseCentroid(k=3, metric="mahalanobis", covariance="total"),
        nfs.SparseCentroid(k=3, metric="mahalanobis", covariance="full"),
        nfs.SparseCentroid(k=3, metric="manhattan"),
    ],
    ids=lambda estimator: f"{estimator.metric}, {estimator.covariance}",
)
def test_centers_of_values_of_any_sign(estimator):
    X, y = real_rows()
    model = estimator.fit(X, y)
    same(model.to_sklearn(), model, real_rows(seed=1)[0])


def test_features_that_were_not_selected_are_weighed_where_the_model_weighs_them():
    X, y = hard_counts(200, ["a", "b", "c"], 5)
    model = nfs.ErrorRateSelector(k=6).fit(X, y)
    same(model.to_sklearn(), model, hard_counts(200, ["a", "b", "c"], 6)[0])


def test_classes_without_documents_are_never_predicted():
    X, y = hard_counts(200, ["a", "b"], 7)
    model = nfs.SparseCentroid(k=4).partial_fit(X, y, classes=["a", "b", "c"])
    same(model.to_sklearn(), model, X)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match="24 features"):
        CASES[0].model.to_sklearn().predict(np.zeros((2, 5)))


CHILD = """
import pickle, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "nfs_dask":
            raise ImportError("nfs_dask is not here")

sys.meta_path.insert(0, Blocked())
try:
    import nfs_dask
except ImportError:
    pass
else:
    sys.exit("nfs_dask can be imported")
with open(sys.argv[1], "rb") as file:
    given = pickle.load(file)
with open(sys.argv[2], "wb") as file:
    pickle.dump([pipeline.predict(rows) for pipeline, rows in given], file)
assert "nfs_dask" not in sys.modules
"""


def test_pickles_are_loaded_where_this_package_is_not(tmp_path):
    pairs = [(case.model.to_sklearn(), case.X) for case in CASES]
    texts, vectorizer, model = of_texts()
    pairs.append((model.to_sklearn(vectorizer=vectorizer), texts))
    (tmp_path / "in").write_bytes(pickle.dumps(pairs))
    command = [sys.executable, "-W", "ignore", "-c", CHILD, tmp_path / "in", tmp_path / "out"]
    subprocess.run(command, check=True, cwd=tmp_path)
    found = pickle.loads((tmp_path / "out").read_bytes())
    expected = [*(case.model.predict(named(case.X)) for case in CASES), model.predict(vectorizer.transform(texts))]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pickle_is_as_small_as_the_model():
    X = sparse.random_array((50, 1_000_000), density=1e-5, rng=np.random.default_rng(0), format="csr")
    X.data[:] = 1
    model = nfs.SparseMultinomialNB(k=20).fit(X, ["a", "b"] * 25)
    pipeline = model.to_sklearn()
    assert len(pickle.dumps(pipeline)) < 1_020_000  # a byte a column is the mask of the selector
    np.testing.assert_array_equal(pipeline.predict(X), model.predict(X))


def test_zero_probabilities_are_refused():
    (case, *_) = [case for case in sql_cases() if case.name == "zero probabilities"]
    with pytest.raises(InputError, match="alpha=0"):
        case.model.to_sklearn()


# Texts

TEXTS = [
    "Green tea, black tea",
    "Café au lait",
    "more COFFEE",
    "a cup of tea",
    "",
    "ΟΔΟΣ naïve coffee",
    "tea-cup 12",
] * 5
LABELS = ["tea", "coffee", "coffee", "tea", "tea", "coffee", "tea"] * 5


def of_texts(**options):
    vectorizer = TextVectorizer(**options)
    return TEXTS, vectorizer, nfs.SparseMultinomialNB(k=6).fit(vectorizer.fit_transform(TEXTS), LABELS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngrams": (1, 2), "stop_words": ["of", "a"], "strip_accents": "unicode"},
        {"analyzer": "char_wb", "ngrams": (2, 3), "lowercase": False},
        {"binary": True, "token_pattern": r"\w+"},
        {"tfidf": True, "norm": None, "sublinear_tf": True},
    ],
    ids=str,
)
def test_texts_are_counted_as_they_were(options):
    texts, vectorizer, model = of_texts(**options)
    pipeline = model.to_sklearn(vectorizer=vectorizer)
    new = [*texts, "Tea or coffee?", "\u00e9 cafe\u0301", "NAÏVE naive"]
    counted = pipeline[:-1].transform(new)
    expected = vectorizer.transform(new)[:, model.get_support(indices=True)]
    np.testing.assert_allclose(counted.toarray(), expected.toarray(), rtol=1e-14)
    np.testing.assert_array_equal(pipeline.predict(new), model.predict(vectorizer.transform(new)))


@pytest.mark.parametrize("options", [{}, {"tfidf": True, "norm": None}], ids=str)
def test_a_model_of_ingested_texts_knows_how_they_were_read(options, tmp_path):
    frame = pd.DataFrame({"text": TEXTS, "label": LABELS})
    nfs.ingest(frame, tmp_path / "s", text_column="text", label_column="label", **options)
    nfs.SparseMultinomialNB(k=5).fit(nfs.open_dataset(tmp_path / "s")).save(tmp_path / "m")
    model = nfs.load_model(tmp_path / "m")
    new = [*TEXTS, "tea for two", "no word of it"]
    np.testing.assert_allclose(model.to_sklearn().predict_proba(new), model.predict_proba(new), atol=1e-13)
    rows = nfs.open_dataset(tmp_path / "s")
    by_rows = model.to_sklearn(texts=False)
    assert by_rows.n_features_in_ == rows.n_features


@pytest.mark.parametrize(
    ("options", "what"),
    [({"tfidf": True}, "norm='l2'"), ({"hashed": 8}, "hashes"), ({"tokenizer": str.split}, "str.split")],
    ids=str,
)
def test_texts_that_scikit_learn_would_read_otherwise_are_refused(options, what):
    _, vectorizer, model = of_texts(**options)
    with pytest.raises(InputError, match=what):
        model.to_sklearn(vectorizer=vectorizer)
    same(model.to_sklearn(), model, vectorizer.transform(TEXTS))


def test_wrong_arguments_are_refused():
    _, vectorizer, model = of_texts()
    with pytest.raises(InputError, match="texts=False asks for rows"):
        model.to_sklearn(texts=False, vectorizer=vectorizer)
    with pytest.raises(InputError, match="give vectorizer="):
        model.to_sklearn(texts=True)
    with pytest.raises(InputError, match="give the TextVectorizer"):
        model.to_sklearn(vectorizer="tea")
