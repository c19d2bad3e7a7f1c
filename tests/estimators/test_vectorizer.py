"""TextVectorizer gives what scikit-learn's vectorizers give, for every container, lazily where that is lazy."""

from __future__ import annotations

import pickle
from dataclasses import is_dataclass

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from nfs_dask import DaskEngine, InputError, SerialEngine, SparseBernoulliNB, SparseMultinomialNB, TextVectorizer

WORDS = "the a tea Tea coffee café naïve green black cup cups of and 12 x ünder 日本 don't e-mail Ω".split()


def make_corpus(n=60, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 25, n)
    texts = [" ".join(rng.choice(WORDS, length)) for length in lengths]
    return [*texts, "", "  ", "tea, tea; TEA!"]


CORPUS = make_corpus()
LABELS = np.array(["tea" if text.lower().count("tea") > 1 else "other" for text in CORPUS])

PARAMETERS = [
    {},
    {"ngrams": (1, 2)},
    {"ngrams": (2, 3), "lowercase": False},
    {"analyzer": "char", "ngrams": (1, 3)},
    {"analyzer": "char_wb", "ngrams": (2, 2)},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "stop_words": ["the", "of"]},
    {"stop_words": "english", "ngrams": (1, 2)},
    {"token_pattern": r"(?u)\w+"},
    {"token_pattern": r"(\w)\w*"},
    {"binary": True, "ngrams": (1, 2)},
    {"min_df": 3, "max_df": 30},
    {"min_df": 0.1, "max_df": 0.6, "ngrams": (1, 2)},
    {"vocabulary": ["tea", "coffee", "black tea"], "ngrams": (1, 2)},
    {"vocabulary": {"tea": 1, "cup": 2, "zzz": 0}},
]
WEIGHTS = [
    {"tfidf": True},
    {"tfidf": True, "norm": "l1"},
    {"tfidf": True, "norm": None},
    {"tfidf": True, "sublinear_tf": True},
    {"tfidf": True, "binary": True},
]


def theirs(parameters):
    """scikit-learn's vectorizer of the same parameters."""
    renamed = {"ngram_range" if name == "ngrams" else name: value for name, value in parameters.items()}
    return TfidfVectorizer(**renamed) if renamed.pop("tfidf", False) else CountVectorizer(**renamed)


def assert_same(ours, expected):
    expected = sparse.csr_array(expected)
    assert ours.shape == expected.shape
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours.indptr, expected.indptr)
    np.testing.assert_array_equal(ours.indices, expected.indices)
    np.testing.assert_array_equal(ours.data, expected.data)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_counts_are_scikit_learns(parameters):
    ours, their = TextVectorizer(**parameters), theirs(parameters)
    expected = their.fit(CORPUS).transform(CORPUS)
    assert_same(ours.fit_transform(CORPUS), expected)
    assert_same(ours.fit(CORPUS).transform(CORPUS), expected)
    np.testing.assert_array_equal(ours.get_feature_names_out(), their.get_feature_names_out())
    assert ours.get_feature_names_out().dtype == object
    assert ours.vocabulary_ == their.vocabulary_


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("parameters", [{}, *PARAMETERS[-4:]], ids=str)
def test_weights_are_scikit_learns_to_the_bit(parameters, weights):
    ours, their = TextVectorizer(**{**parameters, **weights}), theirs({**parameters, **weights})
    expected = their.fit(CORPUS).transform(CORPUS)
    assert_same(ours.fit_transform(CORPUS), expected)
    assert_same(ours.fit(iter(CORPUS)).transform(iter(CORPUS)), expected)
    np.testing.assert_array_equal(ours.idf_, their.idf_)


def test_documents_that_were_not_there_at_the_fit():
    others = make_corpus(20, seed=1) + ["never seen words"]
    assert_same(
        TextVectorizer(tfidf=True).fit(CORPUS).transform(others), TfidfVectorizer().fit(CORPUS).transform(others)
    )


def test_the_most_frequent_terms_are_kept_and_the_first_of_equal_ones():
    texts = ["b b b a c", "d d a c", "e e a c"]  # 3 b, 3 a, 3 c, 2 d, 2 e
    assert TextVectorizer(max_features=2, token_pattern=r"\w").fit(texts).get_feature_names_out().tolist() == ["a", "b"]
    kept = TextVectorizer(max_features=4, token_pattern=r"\w").fit(texts)
    assert kept.get_feature_names_out().tolist() == ["a", "b", "c", "d"]
    binary = TextVectorizer(max_features=2, token_pattern=r"\w", binary=True).fit(texts)
    assert binary.get_feature_names_out().tolist() == ["a", "c"]


def test_a_tokenizer():
    ours = TextVectorizer(tokenizer=str.split, lowercase=False)
    their = CountVectorizer(tokenizer=str.split, lowercase=False, token_pattern=None)
    assert_same(ours.fit_transform(CORPUS), their.fit(CORPUS).transform(CORPUS))
    assert_same(ours.transform(bag()).compute(scheduler="sync"), their.transform(CORPUS))


# Containers


def bag():
    return db.from_sequence(CORPUS, npartitions=5)


CONTAINERS = {
    "tuple": tuple,
    "array": np.array,
    "objects": lambda texts: np.array(texts, object),
    "Series": pd.Series,
    "string Series": lambda texts: pd.Series(texts, dtype="string"),
    "categories": lambda texts: pd.Series(texts, dtype="category"),
}
LAZY = {
    "bag": lambda texts: db.from_sequence(texts, npartitions=5),
    "mapped bag": lambda texts: db.from_sequence(texts, npartitions=4).map(str.strip),
    "one partition": lambda texts: db.from_sequence(texts, npartitions=1),
    "many partitions": lambda texts: db.from_sequence(texts, partition_size=2),
    "Series": lambda texts: dd.from_pandas(pd.Series(texts), npartitions=3),
    "objects": lambda texts: da.from_array(np.array(texts, object), chunks=20),
}
SOME = [{"ngrams": (1, 2)}, {"tfidf": True, "min_df": 2}, {"max_features": 7}, {"vocabulary": ["tea"], "tfidf": True}]
HASHED = [{"hashed": 10}, {"hashed": 6, "ngrams": (1, 2), "binary": True}, {"hashed": 5, "tfidf": True}]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("parameters", SOME[:2], ids=str)
def test_containers_in_memory(container, parameters):
    texts = CONTAINERS[container](CORPUS)
    expected = TextVectorizer(**parameters).fit_transform(CORPUS)
    assert_same(TextVectorizer(**parameters).fit_transform(texts), expected)
    assert_same(TextVectorizer(**parameters).fit(texts).transform(texts), expected)


@pytest.mark.parametrize("container", LAZY)
@pytest.mark.parametrize("parameters", SOME + HASHED, ids=str)
def test_lazy_containers(container, parameters):
    texts = LAZY[container](CORPUS)
    here = TextVectorizer(**parameters).fit(CORPUS)
    there = TextVectorizer(**parameters).fit(texts)
    expected = here.transform(CORPUS)
    lazy = there.transform(texts)
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == expected.dtype
    assert lazy.shape[1] == expected.shape[1] and np.isnan(lazy.shape[0])
    assert lazy.npartitions == texts.npartitions
    assert_same(lazy.compute(scheduler="sync"), expected)
    assert_same(clone(there).fit_transform(texts).compute(scheduler="sync"), expected)


def test_transforming_computes_nothing():
    def refuse(text):
        raise AssertionError("a partition was computed")

    vectorizer = TextVectorizer().fit(CORPUS)
    vectorizer.transform(db.from_sequence(CORPUS, npartitions=3).map(refuse))


@pytest.mark.parametrize("engine", [None, SerialEngine(), DaskEngine()], ids=repr)
def test_a_cluster_counts_the_same(engine, cluster):
    ours = TextVectorizer(tfidf=True, engine=engine).fit(bag())
    assert_same(ours.transform(bag()).compute(), TfidfVectorizer().fit(CORPUS).transform(CORPUS))


def test_the_vocabulary_is_in_the_graph_once():
    vectorizer = TextVectorizer(ngrams=(1, 2)).fit(CORPUS)
    vocabulary = len(pickle.dumps(vectorizer._columns))
    lazy = vectorizer.transform(db.from_sequence(CORPUS, partition_size=1))
    texts = len(pickle.dumps(CORPUS))
    assert len(pickle.dumps(dict(lazy.__dask_graph__()))) < vocabulary + texts + 2000 * len(CORPUS)


# Hashing


@pytest.mark.parametrize("parameters", HASHED, ids=str)
def test_hashed_columns_are_columns_of_terms_added_up(parameters):
    """Whatever the hash is: terms are in one column each, and the same one in every document."""
    hashed = TextVectorizer(**parameters)
    rest = {name: value for name, value in parameters.items() if name not in ("hashed", "tfidf", "binary")}
    single = TextVectorizer(**rest).fit(CORPUS)
    names = single.get_feature_names_out()
    columns = TextVectorizer(hashed=parameters["hashed"], token_pattern="(?s).+", lowercase=False).fit([""])
    where = columns.transform(names).indices
    assert len(where) == len(names)
    counts = single.transform(CORPUS) @ sparse.csr_array(
        (np.ones(len(names), np.int64), (np.arange(len(names)), where)), shape=(len(names), 2 ** parameters["hashed"])
    )
    counts.sum_duplicates()
    if parameters.get("binary"):
        counts.data[:] = 1
    if parameters.get("tfidf"):
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = TfidfTransformer().fit_transform(counts)
    assert_same(hashed.fit(CORPUS).transform(CORPUS), counts)


def test_hashed_columns_have_no_names():
    hashed = TextVectorizer(hashed=8).fit(CORPUS)
    for name in ("get_feature_names_out", "inverse_transform", "vocabulary_", "idf_"):
        assert not hasattr(hashed, name)


# scikit-learn's conventions


def test_a_pipeline_names_the_features_it_selected():
    pipeline = make_pipeline(TextVectorizer(), SparseMultinomialNB(3)).fit(CORPUS, LABELS)
    names = TextVectorizer().fit(CORPUS).get_feature_names_out()
    support = pipeline[-1].get_support(indices=True)
    assert pipeline.get_feature_names_out().tolist() == names[support].tolist()
    assert "tea" in pipeline.get_feature_names_out()
    assert pipeline.score(CORPUS, LABELS) > 0.9


def test_a_pipeline_with_all_features_is_scikit_learns():
    ours = make_pipeline(TextVectorizer(tfidf=True), SparseMultinomialNB("all")).fit(CORPUS, LABELS)
    their = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(CORPUS, LABELS)
    np.testing.assert_allclose(ours.predict_proba(CORPUS), their.predict_proba(CORPUS), rtol=1e-12)


def test_a_pipeline_of_a_bag_predicts_lazily():
    y = da.from_array(
        LABELS, chunks=(tuple(bag().map_partitions(lambda part: [len(list(part))]).compute(scheduler="sync")),)
    )
    pipeline = make_pipeline(TextVectorizer(binary=True), SparseBernoulliNB(3)).fit(bag(), y)
    here = make_pipeline(TextVectorizer(binary=True), SparseBernoulliNB(3)).fit(CORPUS, LABELS)
    lazy = pipeline.predict(bag())
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), here.predict(CORPUS))


def test_grid_search_over_both_steps():
    pipeline = make_pipeline(TextVectorizer(), SparseMultinomialNB(alpha=0.5))
    grid = {"textvectorizer__ngrams": [(1, 1), (1, 2)], "sparsemultinomialnb__k": [2, 5, "all"]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(CORPUS, LABELS)
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.best_score_ > 0.8


def test_clone_pickle_and_parameters():
    fitted = TextVectorizer(ngrams=(1, 2), stop_words="english", tfidf=True).fit(CORPUS)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(CORPUS)
    with pytest.raises(NotFittedError):
        copy.get_feature_names_out()
    again = pickle.loads(pickle.dumps(fitted))
    assert_same(again.transform(CORPUS), fitted.transform(CORPUS))
    changed = fitted.set_params(ngrams=(1, 1), tfidf=False, stop_words=None).fit(CORPUS)
    assert_same(changed.transform(CORPUS), CountVectorizer().fit(CORPUS).transform(CORPUS))
    assert "TextVectorizer" in repr(fitted)


def test_terms_of_rows():
    ours, their = TextVectorizer(), CountVectorizer()
    X = ours.fit_transform(CORPUS)
    their.fit(CORPUS)
    for one, other in zip(ours.inverse_transform(X), their.inverse_transform(sparse.csr_matrix(X)), strict=True):
        assert one.tolist() == other.tolist()
    assert ours.inverse_transform(X.toarray()[:1])[0].tolist() == ours.inverse_transform(X)[0].tolist()
    with pytest.raises(InputError, match="columns, and there are"):
        ours.inverse_transform(np.ones((1, 2)))


# Refusals


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"analyzer": "words"}, "analyzer='words'"),
        ({"ngrams": 2}, "ngrams=2"),
        ({"stop_words": "klingon"}, "stop_words='klingon'"),
        ({"min_df": -1}, "min_df=-1"),
        ({"min_df": 10**6}, "no term would be left|no term is left"),
        ({"min_df": 0.9, "max_df": 0.1}, "no term would be left"),
        ({"max_df": 0, "min_df": 0}, "no term is left"),
        ({"max_features": 0}, "max_features=0"),
        ({"vocabulary": []}, "vocabulary is empty"),
        ({"vocabulary": ["a", "a"]}, "more than once"),
        ({"vocabulary": ["a"], "hashed": 4}, "vocabulary= and hashed="),
        ({"hashed": 0}, "hashed=0"),
        ({"hashed": 29, "tfidf": True}, "1 to 28"),
        ({"sublinear_tf": True}, "add tfidf=True"),
        ({"tokenizer": "split"}, "tokenizer='split'"),
    ],
    ids=str,
)
def test_parameters_that_mean_nothing(parameters, message):
    with pytest.raises(InputError, match=message):
        TextVectorizer(**parameters).fit(CORPUS)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "of type str"),
        (pd.DataFrame({"text": CORPUS}), "give the column of texts"),
        (np.array([CORPUS]), "with one string"),
        (dd.from_pandas(pd.DataFrame({"text": CORPUS}), npartitions=2), "give the column of texts"),
        (dd.from_pandas(pd.Series([1, 2]), npartitions=1), "does not hold strings"),
        (["a", None, "b"], "document 1 is None"),
        (pd.Series(["a", np.nan]), "document 1 is nan"),
        (["a", b"b"], "document 1 is a bytes, not a string; decode it"),
        (["a", ("b", "c")], "document 1 is a tuple"),
        (["a", "b\ud800"], "document 1 has a lone surrogate"),
        ([1.0], "document 0 is 1.0"),
        ([], "there are no documents"),
        (17, "of type int"),
        (["", " "], "no term is left of 0 in 2 documents"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_not_texts(texts, message):
    with pytest.raises(InputError, match=message):
        TextVectorizer().fit(texts)
    with pytest.raises(InputError, match=message):
        TextVectorizer().fit_transform(texts)


def test_a_bad_text_in_a_bag_is_named():
    texts = db.from_sequence(["a b", "c", "d", None], npartitions=2)
    with pytest.raises(InputError, match="partition 1, document 1 is None"):
        TextVectorizer().fit(texts)


def test_matrices_without_rows():
    vectorizer = TextVectorizer(tfidf=True).fit(CORPUS)
    empty = vectorizer.transform([])
    assert empty.shape == (0, len(vectorizer.vocabulary_)) and empty.dtype == np.float64


# Without a fit


NEEDS_NONE = [
    {"vocabulary": ["tea", "green", "milk"]},
    {"vocabulary": {"tea": 1, "green": 0}, "binary": True},
    {"hashed": 6, "ngrams": (1, 2)},
]


@pytest.mark.parametrize("parameters", NEEDS_NONE, ids=str)
def test_columns_that_are_known_need_no_fit(parameters):
    fitted = TextVectorizer(**parameters).fit(CORPUS)
    fresh = TextVectorizer(**parameters)
    assert_same(fresh.transform(CORPUS), fitted.transform(CORPUS))
    bag = db.from_sequence(CORPUS, npartitions=3)
    assert_same(TextVectorizer(**parameters).transform(bag).compute(), fitted.transform(CORPUS))
    if "vocabulary" in parameters:
        assert TextVectorizer(**parameters).get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
        theirs = CountVectorizer(vocabulary=parameters["vocabulary"], binary=parameters.get("binary", False))
        assert_same(fresh.transform(CORPUS), theirs.transform(CORPUS))
        assert [row.tolist() for row in TextVectorizer(**parameters).inverse_transform(fresh.transform(CORPUS))] == [
            sorted(row.tolist(), key=fresh.get_feature_names_out().tolist().index)
            for row in theirs.inverse_transform(theirs.transform(CORPUS))
        ]
    check_is_fitted(fresh)
    assert not get_tags(fresh).requires_fit


@pytest.mark.parametrize("parameters", [*NEEDS_NONE, {}], ids=str)
def test_weights_need_one(parameters):
    fresh = TextVectorizer(**parameters, tfidf=True)
    assert get_tags(fresh).requires_fit
    for method in (lambda: fresh.transform(CORPUS), lambda: fresh.idf_):
        with pytest.raises(NotFittedError):
            method()


def test_a_pipeline_predicts_through_what_was_never_fitted():
    model = SparseMultinomialNB(alpha=0.5).fit(TextVectorizer(hashed=10).transform(CORPUS), LABELS)
    both = make_pipeline(TextVectorizer(hashed=10), model)
    assert both.predict(CORPUS).tolist() == model.predict(TextVectorizer(hashed=10).fit_transform(CORPUS)).tolist()


def test_hashed_weights_are_those_of_the_documents_of_their_columns():
    counts = TextVectorizer(hashed=4).transform(CORPUS)
    ours = TextVectorizer(hashed=4, tfidf=True).fit(CORPUS)
    assert_same(ours.transform(CORPUS), TfidfTransformer().fit(counts).transform(counts))
    np.testing.assert_array_equal(ours.idf_, TfidfTransformer().fit(counts).idf_)
    unseen = ["words that nobody wrote before"]
    rows = TextVectorizer(hashed=4).transform(unseen)
    assert_same(ours.transform(unseen), TfidfTransformer().fit(counts).transform(rows))


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
def test_numbers_of_numpy_are_numbers(kind):
    settings = {"min_df": kind(2), "max_df": np.float64(0.9), "max_features": kind(5), "ngrams": (kind(1), kind(2))}
    plain = TextVectorizer(min_df=2, max_df=0.9, max_features=5, ngrams=(1, 2)).fit_transform(CORPUS)
    assert_same(TextVectorizer(**settings).fit_transform(CORPUS), plain)
    both = TextVectorizer(ngrams=(1, 2)).fit_transform(CORPUS)
    assert_same(TextVectorizer(ngrams=np.array([1, 2], kind)).fit_transform(CORPUS), both)
    hashed = TextVectorizer(hashed=kind(5), lowercase=np.True_).transform(CORPUS)
    assert_same(hashed, TextVectorizer(hashed=5).transform(CORPUS))


@pytest.mark.parametrize("parameters", [{}, {"hashed": 4}, {"vocabulary": ["tea", "green"]}], ids=str)
def test_a_state_holds_plain_values(parameters):
    def values(value):
        parts = value.values() if isinstance(value, dict) else ()
        return [value, *(inner for part in parts for inner in values(part))]

    state = TextVectorizer(**parameters, tfidf=True).fit(CORPUS).__getstate__()
    assert not [value for value in values(state) if is_dataclass(value)]
