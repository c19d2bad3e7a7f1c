"""Raw text at prediction: to the bit what the features of the training data would have given."""

from __future__ import annotations

import pickle

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from nfs_dask import DataWarning, InputError, SparseBernoulliNB, SparseMultinomialNB, ingest, load_model
from nfs_dask.documents import in_memory as given
from tests.helpers.string_types import STRING_TYPES

METHODS = ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function"]
WORDS = "the a tea Tea coffee café naïve green black cup cups of and 12 x ünder 日本 don't e-mail Ω milk".split()


def make_texts(n, seed, lengths=(1, 25)):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(*lengths))) for _ in range(n)]


def labels_of(texts):
    """Three classes that depend on the words."""
    return np.array([["milk", "tea", "tea", "coffee"][min(3, text.lower().count("tea"))] for text in texts])


TRAINING = make_texts(120, seed=0)
LABELS = labels_of(TRAINING)
UNSEEN = [*make_texts(40, seed=1, lengths=(0, 25)), "", " ", "words nobody saw", "tea " * 300]

SETTINGS = {
    "counts": {},
    "bigrams": {"ngrams": (1, 2), "min_df": 2},
    "characters": {"analyzer": "char_wb", "ngrams": (2, 3)},
    "binary": {"binary": True},
    "vocabulary": {"vocabulary": ["tea", "milk", "cup", "coffee", "absent"]},
    "weights without norm": {"tfidf": True, "norm": None},
    "weights": {"tfidf": True, "min_df": 3, "max_df": 0.8},
    "l1 weights": {"tfidf": True, "norm": "l1", "sublinear_tf": True},
    "weights of bigrams": {"tfidf": True, "ngrams": (1, 2)},
    "weights of a vocabulary": {"tfidf": True, "vocabulary": ["tea", "milk", "cup", "coffee", "absent"]},
}


def vectorizer(settings):
    """scikit-learn's, of the same settings."""
    renamed = {"ngram_range" if name == "ngrams" else name: value for name, value in settings.items()}
    return TfidfVectorizer(**renamed) if renamed.pop("tfidf", False) else CountVectorizer(**renamed)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of the training texts by the name of their settings, made when they are asked for."""
    made = {}

    def store(name):
        if name not in made:
            made[name] = ingest(TRAINING, tmp_path_factory.mktemp("stores") / "store", labels=LABELS, **SETTINGS[name])
        return made[name]

    return store


@pytest.fixture
def fitted(stores):
    return SparseMultinomialNB(8).fit(stores("counts"))


def assert_same_sparse(ours, expected):
    expected = sparse.csr_array(expected)
    assert sparse.issparse(ours) and ours.format == "csr"
    assert ours.shape == expected.shape
    np.testing.assert_array_equal(ours.indptr, expected.indptr)
    np.testing.assert_array_equal(ours.indices, expected.indices)
    np.testing.assert_array_equal(ours.data, expected.data)


@pytest.mark.parametrize("k", [4, "all"])
@pytest.mark.parametrize("name", SETTINGS)
def test_raw_text_predicts_what_scikit_learns_matrix_does(name, k, stores, tmp_path):
    made = vectorizer(SETTINGS[name]).fit(TRAINING)
    X = made.transform(UNSEEN)
    model = (SparseBernoulliNB if name == "binary" else SparseMultinomialNB)(k).fit(stores(name))
    model.save(tmp_path / "model")
    for one in (model, load_model(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for method in METHODS:
            np.testing.assert_array_equal(getattr(one, method)(UNSEEN), getattr(one, method)(X))
        assert_same_sparse(one.transform(UNSEEN), X[:, one.get_support(indices=True)])
    assert model.score(TRAINING, LABELS) == model.score(stores(name), LABELS)


@pytest.mark.parametrize(
    "settings", [{"hashed": 12}, {"hashed": 4, "ngrams": (1, 2)}, {"hashed": 4, "tfidf": True}], ids=str
)
@pytest.mark.parametrize("k", [5, "all"])
@pytest.mark.filterwarnings("ignore:.*collision")
def test_hashed_columns(settings, k, tmp_path):
    dataset = ingest(TRAINING, tmp_path / "store", labels=LABELS, **settings)
    SparseMultinomialNB(k).fit(dataset).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(TRAINING), getattr(model, method)(dataset))
    assert_same_sparse(model.transform(TRAINING), model.transform(dataset))


# Regions

SUBJECTS, BODIES = make_texts(80, seed=2, lengths=(0, 5)), make_texts(80, seed=3)
REGIONAL = pd.DataFrame({"subject": SUBJECTS, "body": BODIES})
REGION_LABELS = labels_of([f"{subject} {body}" for subject, body in zip(SUBJECTS, BODIES, strict=True)])
SHAPES = {
    "DataFrame": lambda frame: frame,
    "other columns": lambda frame: frame.assign(date=0)[["date", "body", "subject"]],
    "tuples": lambda frame: list(frame.itertuples(index=False, name=None)),
    "dicts": lambda frame: frame.to_dict("records"),
    "lists": lambda frame: [frame["subject"].tolist(), frame["body"].tolist()],
    "arrays": lambda frame: [frame["subject"].to_numpy(), frame["body"].to_numpy()],
}


def regional_matrix(settings, frame):
    """Columns of both regions over one vocabulary; a document has a term once, wherever it is."""
    counting = CountVectorizer().fit([*SUBJECTS, *BODIES])
    X = np.hstack([counting.transform(frame[name]).toarray() for name in ("subject", "body")]).astype(np.float64)
    if settings:
        df = sum(counting.transform(texts).toarray() for texts in (SUBJECTS, BODIES)).astype(bool).sum(axis=0)
        X *= np.tile(np.log((len(REGIONAL) + 1) / (df + 1)) + 1, 2)
        if settings["norm"] == "l2":
            lengths = np.sqrt((X * X).sum(axis=1, keepdims=True))
            X /= np.where(lengths == 0, 1, lengths)
    return X


@pytest.mark.parametrize("settings", [{}, {"tfidf": True, "norm": None}, {"tfidf": True, "norm": "l2"}], ids=str)
def test_regions(settings, tmp_path):
    source = REGIONAL.assign(label=REGION_LABELS)
    dataset = ingest(source, tmp_path / "store", regions=["subject", "body"], label_column="label", **settings)
    model = SparseMultinomialNB(6).fit(dataset)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    expected = model.predict_proba(dataset)
    columns = model.transform(dataset)
    np.testing.assert_allclose(
        columns.toarray(), regional_matrix(settings, REGIONAL)[:, model.get_support(indices=True)], rtol=1e-12
    )
    for name, shape in SHAPES.items():
        given = shape(REGIONAL)
        np.testing.assert_array_equal(loaded.predict_proba(given), expected, err_msg=name)
        assert_same_sparse(loaded.transform(given), columns)
    lazy = {
        "DataFrame": dd.from_pandas(REGIONAL, npartitions=3),
        "dicts": db.from_sequence(SHAPES["dicts"](REGIONAL), npartitions=3),
        "tuples": db.from_sequence(SHAPES["tuples"](REGIONAL), npartitions=3),
    }
    for name, given in lazy.items():
        np.testing.assert_array_equal(loaded.predict_proba(given).compute(scheduler="sync"), expected, err_msg=name)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["one text"], "document 0 is a str; give a DataFrame with columns 'subject', 'body'"),
        ([("a", "b"), ("a", "b", "c")], "document 1 is a tuple of 3"),
        ([{"subject": "a", "body": "b"}, {"subject": "a"}], "document 1 has no 'body'"),
        ([("a", "b"), (None, None)], "document 1, 'subject' is None"),
        ([["a"], ["b"], ["c"]], "3 lists of texts were given; give one for each region"),
        ([["a", "b"], ["c"]], "not equally long: one has 1"),
        (pd.DataFrame({"subject": ["a"], "text": ["b"]}), "no column 'body'"),
        (pd.DataFrame({"title": ["a"]}), "X has columns of texts, 'title'; give those that the model reads"),
    ],
    ids=range(8),
)
def test_regions_that_are_not_there(texts, message, tmp_path_factory, regional):
    with pytest.raises(InputError, match=message):
        regional.predict(texts)


@pytest.fixture(scope="module")
def regional(tmp_path_factory):
    store = tmp_path_factory.mktemp("regional") / "store"
    return SparseMultinomialNB(6).fit(ingest(REGIONAL, store, regions=["subject", "body"], labels=REGION_LABELS))


# Containers

IN_MEMORY = {
    "tuple": tuple,
    "array": np.array,
    "objects": lambda texts: np.array(texts, object),
    **STRING_TYPES,
}
LAZY = {
    "bag": lambda texts: db.from_sequence(texts, npartitions=5),
    "mapped bag": lambda texts: db.from_sequence(texts, npartitions=2).map(str.strip),
    "Series": lambda texts: dd.from_pandas(pd.Series(texts), npartitions=3),
    "objects": lambda texts: da.from_array(np.array(texts, object), chunks=20),
}


@pytest.mark.parametrize("container", IN_MEMORY)
def test_containers_in_memory(container, fitted):
    texts = IN_MEMORY[container](UNSEEN)
    np.testing.assert_array_equal(fitted.predict_proba(texts), fitted.predict_proba(UNSEEN))


@pytest.mark.parametrize("container", LAZY)
@pytest.mark.parametrize("name", ["counts", "weights"])
def test_lazy_containers(container, name, stores):
    model = SparseMultinomialNB(8).fit(stores(name))
    texts = LAZY[container](UNSEEN)
    for method in METHODS:
        expected = getattr(model, method)(UNSEEN)
        lazy = getattr(model, method)(texts)
        assert isinstance(lazy, da.Array) == (container != "Series")
        if container != "Series":
            assert lazy.dtype == expected.dtype
            assert lazy.ndim == expected.ndim and np.isnan(lazy.shape[0]) and lazy.shape[1:] == expected.shape[1:]
        np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
    columns = model.transform(texts)
    assert columns.dtype == model.transform(UNSEEN).dtype
    assert_same_sparse(columns.compute(scheduler="sync"), model.transform(UNSEEN))
    assert model.score(texts, model.predict(UNSEEN)) == 1.0


def test_a_cluster_predicts_the_same(cluster, stores):
    model = SparseMultinomialNB(8).fit(stores("weights"))
    found = model.predict_proba(db.from_sequence(UNSEEN, npartitions=4)).compute()
    np.testing.assert_array_equal(found, model.predict_proba(UNSEEN))


def test_the_model_is_in_the_graph_once(stores):
    model = SparseMultinomialNB("all").fit(stores("bigrams"))
    texts = db.from_sequence(UNSEEN * 5, partition_size=1)
    graph = pickle.dumps(dict(model.predict(texts).__dask_graph__()))
    assert len(graph) < len(pickle.dumps(model.reader_)) + len(pickle.dumps(UNSEEN)) * 5 + 2000 * len(UNSEEN) * 5


def test_predicting_computes_nothing(fitted):
    def refuse(text):
        raise AssertionError("a partition was computed")

    texts = db.from_sequence(UNSEEN, npartitions=3).map(refuse)
    for method in METHODS:
        getattr(fitted, method)(texts)
    fitted.transform(texts)


@pytest.mark.parametrize("name", ["counts", "weights"])
def test_long_lists_are_read_a_part_at_a_time(name, stores, monkeypatch):
    model = SparseMultinomialNB(8).fit(stores(name))
    expected, columns = model.predict_proba(UNSEEN), model.transform(UNSEEN)
    monkeypatch.setattr(given, "BATCH_NBYTES", 50)
    assert sum(1 for _ in model.reader_.blocks(UNSEEN)) > 5
    np.testing.assert_array_equal(model.predict_proba(UNSEEN), expected)
    assert_same_sparse(model.transform(UNSEEN), columns)


def test_thresholds_and_labels_of_the_caller(stores):
    """The data of a store under other labels are still texts."""
    labels = np.where(np.arange(len(TRAINING)) % 2, LABELS, "other")
    model = SparseBernoulliNB(8, binarize=0.2).fit(stores("weights"), labels)
    X = vectorizer(SETTINGS["weights"]).fit(TRAINING).transform(UNSEEN)
    np.testing.assert_array_equal(model.predict_proba(UNSEEN), model.predict_proba(X))


def test_many_empty_texts_are_read_a_part_at_a_time(fitted, monkeypatch):
    monkeypatch.setattr(given, "BATCH_DOCUMENTS", 64)
    monkeypatch.setattr(given, "BATCH_NBYTES", 1000)
    assert sum(1 for _ in fitted.reader_.blocks([""] * 1000)) > 5
    assert fitted.predict([""] * 1000).tolist() == [fitted.predict([""])[0]] * 1000


# Adding documents


def test_documents_that_are_added_later(stores, tmp_path):
    first, added = SparseMultinomialNB(5).fit(stores("counts")), make_texts(20, seed=4)
    more = ingest(added, tmp_path / "more", labels=labels_of(added), vocabulary=first_names(stores("counts")))
    first.partial_fit(more)
    X = CountVectorizer().fit(TRAINING).transform(UNSEEN)
    np.testing.assert_array_equal(first.predict_proba(UNSEEN), first.predict_proba(X))
    first.partial_fit(CountVectorizer().fit(TRAINING).transform(added), labels_of(added))
    np.testing.assert_array_equal(first.predict_proba(UNSEEN), first.predict_proba(X))


def first_names(dataset):
    return dataset.names(np.arange(dataset.n_features))


# Tokenizers


def words(text):
    return text.split()


def test_a_tokenizer_is_given_back_when_a_model_is_loaded(tmp_path):
    dataset = ingest(TRAINING, tmp_path / "store", labels=LABELS, tokenizer=words)
    model = SparseMultinomialNB(8).fit(dataset)
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="tokenizer .*words, which is never stored"):
        load_model(tmp_path / "model").predict(UNSEEN)
    with pytest.raises(InputError, match=r"load_model\(path, tokenizer="):
        model.predict(UNSEEN)
    loaded = load_model(tmp_path / "model", tokenizer=words)
    X = CountVectorizer(tokenizer=words, token_pattern=None).fit(TRAINING).transform(UNSEEN)
    np.testing.assert_array_equal(loaded.predict_proba(UNSEEN), model.predict_proba(X))
    with pytest.warns(DataWarning, match="made with the tokenizer"):
        load_model(tmp_path / "model", tokenizer=str.split)
    with pytest.raises(InputError, match="give a function"):
        load_model(tmp_path / "model", tokenizer="words")


def test_a_tokenizer_that_is_not_wanted(fitted, tmp_path):
    fitted.save(tmp_path / "text")
    with pytest.raises(InputError, match="not made from text with a tokenizer of its own"):
        load_model(tmp_path / "text", tokenizer=words)
    SparseMultinomialNB(2).fit(np.eye(4), [0, 1, 0, 1]).save(tmp_path / "matrix")
    with pytest.raises(InputError, match="not made from text; leave"):
        load_model(tmp_path / "matrix", tokenizer=words)


# Refusals


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", r"put it into a list, \[text\]"),
        (["a", None], "document 1 is None"),
        (["a", b"b"], "decode it first"),
        (["a", 1.5], "document 1 is 1.5, not a string"),
        (pd.Series(["a", np.nan]), "document 1 is nan"),
        (["a", "b", "c\ud800"], "document 2 has a lone surrogate"),
        (pd.DataFrame({"text": ["a"]}), r"X has columns of texts, 'text'; give the one .* X\['text'\]"),
        ([("a", "b")], "document 0 is a tuple"),
    ],
    ids=range(8),
)
def test_what_a_model_of_texts_does_not_read(texts, message, fitted):
    with pytest.raises(InputError, match=message):
        fitted.predict(texts)
    with pytest.raises(InputError, match=message):
        fitted.transform(texts)


def test_a_bad_text_in_a_bag_is_named(fitted):
    with pytest.raises(InputError, match="partition 1, document 0 is None"):
        fitted.predict(db.from_sequence(["a", None], npartitions=2)).compute(scheduler="sync")


@pytest.mark.parametrize(
    "texts", [["a b"], np.array(["a b"]), pd.Series(["a b"]), db.from_sequence(["a b"]), "a b"], ids=repr
)
def test_a_model_of_a_matrix_reads_no_text(texts):
    model = SparseMultinomialNB(2).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(InputError, match=r"was fitted to a matrix; give a matrix of 4 features.*TextVectorizer"):
        model.predict(texts)
    with pytest.raises(InputError, match="was fitted to a matrix"):
        model.transform(texts)


@pytest.mark.parametrize("texts", [["a b", "c"], np.array(["a b", "c"]), db.from_sequence(["a", "b"])], ids=repr)
def test_a_fit_takes_numbers(texts):
    with pytest.raises(InputError, match=r"TextVectorizer\(\).*nfs_dask.ingest"):
        SparseMultinomialNB(2).fit(texts, [0, 1])
    with pytest.raises(InputError, match="TextVectorizer"):
        SparseMultinomialNB(2).partial_fit(texts, [0, 1], classes=[0, 1])


def test_a_model_of_texts_still_takes_matrices_and_datasets(fitted, stores):
    X = CountVectorizer().fit(TRAINING).transform(TRAINING)
    expected = fitted.predict_proba(TRAINING)
    for given_as in (X, X.toarray(), stores("counts"), da.from_array(X.toarray(), chunks=(30, -1))):
        np.testing.assert_array_equal(np.asarray(fitted.predict_proba(given_as)), expected)


def test_a_model_without_its_vocabulary_says_so(stores, tmp_path):
    import shutil

    SparseMultinomialNB(8).fit(stores("weights")).save(tmp_path / "model")
    for folder in (tmp_path / "model").glob("vocabulary-*"):
        shutil.rmtree(folder)
    with pytest.raises(InputError, match=str(tmp_path)):
        load_model(tmp_path / "model").predict(UNSEEN)
