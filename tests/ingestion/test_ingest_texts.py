"""Documents into a store: equal to what scikit-learn makes of them, however they are cut and wherever it is done."""

from __future__ import annotations

import json
import string
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from nfs_dask import DaskEngine, DataWarning, InputError, ResumeError, SerialEngine, ingest, open_dataset
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion import text_plan as planning
from nfs_dask.ingestion.text_plan import TextPlan
from nfs_dask.store.publish import ingest_folder

WORDS = ["alpha", "Beta", "gamma", "don't", "été", "naïve", "ΟΔΟΣ", "x", "a1_b", "日本語", "the", "of", "ﬁn", "İz"]


def documents(n=200, seed=1):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=1 + rng.poisson(6))) + rng.choice([".", "!", " 12"]) for _ in range(n)]
    return texts, np.array(["ham", "spam"])[rng.integers(2, size=n)]


def matrix(dataset):
    """The whole store as one CSR matrix, and the label of each row."""
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    X = sp.vstack([sp.csr_matrix((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)) for b in blocks])
    labels = None if dataset.classes is None else dataset.classes[np.concatenate([b.codes for b in blocks])]
    return X, labels


def names(dataset):
    return dataset.names(np.arange(dataset.n_features))


def assert_equal(dataset, vectorizer, texts):
    # In fit_transform the squares of a row are added in the order in which terms were first met, here and in transform
    # in the order of the columns.
    expected = vectorizer.fit(texts).transform(texts)
    assert names(dataset) == vectorizer.get_feature_names_out().tolist()
    found, _ = matrix(dataset)
    assert found.shape == expected.shape
    expected.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


@pytest.fixture
def small_segments(monkeypatch):
    """Segments and ranges so small that a few documents make several."""
    original = planning.make_text_plan

    def tiny(documents, resources):
        made = original(documents, resources)
        return TextPlan(made.resources, 1, 64, made.import_nbytes)

    monkeypatch.setattr("nfs_dask.ingestion.text_ingest.make_text_plan", tiny)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngrams": (1, 2)},
        {"ngrams": (2, 3), "lowercase": False},
        {"analyzer": "char", "ngrams": (2, 2)},
        {"analyzer": "char_wb", "ngrams": (1, 4)},
        {"strip_accents": "unicode"},
        {"strip_accents": "ascii", "stop_words": ["the", "of"]},
        {"stop_words": "english", "ngrams": (1, 2)},
        {"token_pattern": r"[a-z]+"},
        {"min_df": 3},
        {"min_df": 0.1, "max_df": 0.5},
        {"binary": True},
        {"tokenizer": str.split},
        {"tokenizer": lambda text: text.split("a")},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern'", "ignore:Your stop_words may be")
def test_counts_are_those_of_scikit_learn(tmp_path, settings):
    texts, labels = documents()
    dataset = ingest(texts, tmp_path / "store.zarr", labels=labels, **settings)
    theirs = {"ngram_range" if name == "ngrams" else name: value for name, value in settings.items()}
    assert_equal(dataset, CountVectorizer(**theirs), texts)
    assert matrix(dataset)[1].tolist() == labels.tolist()
    assert dataset.kind == ("binary" if settings.get("binary") else "count")


@pytest.mark.parametrize("settings", [{}, {"sublinear_tf": True}, {"norm": "l1"}, {"norm": None}, {"binary": True}])
def test_weights_are_those_of_scikit_learn_to_the_bit(tmp_path, settings):
    texts, labels = documents()
    dataset = ingest(texts, tmp_path / "store.zarr", labels=labels, tfidf=True, **settings)
    assert_equal(dataset, TfidfVectorizer(**settings), texts)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("settings", [{}, {"tfidf": True, "min_df": 2}, {"max_features": 9}], ids=str)
def test_many_segments_and_ranges_make_the_same_store(tmp_path, settings):
    texts, labels = documents()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nfs_dask.ingestion.text_ingest.make_text_plan", planning.make_text_plan)
        whole = ingest(texts, tmp_path / "whole.zarr", labels=labels, **settings)
    cut = ingest(texts, tmp_path / "cut.zarr", labels=labels, **settings)
    assert cut.fingerprint == whole.fingerprint
    assert names(cut) == names(whole)


def test_the_most_frequent_terms_are_kept_and_ties_go_to_the_lower_column(tmp_path):
    texts = ["b b c c a", "d a", "e d"]
    dataset = ingest(texts, tmp_path / "store.zarr", token_pattern=r"\w+", max_features=3)
    assert names(dataset) == ["a", "b", "c"]  # each twice, as d is


def test_a_vocabulary_of_ones_own(tmp_path):
    texts, _ = documents()
    words = ["gamma", "beta", "never", "alpha"]
    for vocabulary in (words, {word: i for i, word in enumerate(words)}):
        dataset = ingest(texts, tmp_path / f"{type(vocabulary).__name__}.zarr", vocabulary=vocabulary, tfidf=True)
        assert_equal(dataset, TfidfVectorizer(vocabulary=vocabulary), texts)


def test_regions_have_columns_of_their_own_over_one_vocabulary(tmp_path):
    pd = pytest.importorskip("pandas")
    subjects, labels = documents(50, seed=2)
    bodies, _ = documents(50, seed=3)
    frame = pd.DataFrame({"subject": subjects, "body": bodies, "folder": labels})
    dataset = ingest(frame, tmp_path / "store.zarr", regions=["subject", "body"], label_column="folder")
    vectorizer = CountVectorizer().fit(subjects + bodies)
    expected = sp.hstack([vectorizer.transform(subjects), vectorizer.transform(bodies)]).toarray()
    found, given = matrix(dataset)
    np.testing.assert_array_equal(found.toarray(), expected)
    terms = vectorizer.get_feature_names_out().tolist()
    assert names(dataset) == [f"{region}:{term}" for region in ("subject", "body") for term in terms]
    assert given.tolist() == labels.tolist()


def test_a_term_in_two_regions_of_a_document_is_in_one_document(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"subject": ["free money", "hello tea"], "body": ["free tea", "world"]})
    dataset = ingest(frame, tmp_path / "store.zarr", regions=["subject", "body"], min_df=2)
    assert names(dataset) == ["subject:tea", "body:tea"]


def test_hashed_columns_add_up_what_they_share(tmp_path):
    from nfs_dask.text.counting import hash_strings
    from nfs_dask.text.strings import Strings

    texts, labels = documents()
    dataset = ingest(texts, tmp_path / "store.zarr", labels=labels, hashed=3)
    counts = CountVectorizer()
    X = counts.fit_transform(texts).toarray()
    columns = (hash_strings(Strings.of(counts.get_feature_names_out())) >> np.uint64(61)).astype(int)
    expected = np.zeros((len(texts), 8), int)
    for term, column in enumerate(columns):
        expected[:, column] += X[:, term]
    np.testing.assert_array_equal(matrix(dataset)[0].toarray(), expected)
    assert len(set(names(dataset))) == 8


def test_a_cluster_writes_what_one_process_writes(tmp_path, cluster):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    texts, labels = documents(400)
    for number in range(4):
        part = slice(number * 100, number * 100 + 100)
        frame = pd.DataFrame({"text": texts[part], "label": labels[part]})
        frame.to_parquet(tmp_path / f"part-{number}.parquet", row_group_size=30)
    here = ingest(str(tmp_path / "*.parquet"), tmp_path / "a.zarr", label_column="label", engine=SerialEngine())
    there = ingest(str(tmp_path / "*.parquet"), tmp_path / "b.zarr", label_column="label", engine=DaskEngine())
    assert here.fingerprint == there.fingerprint
    assert_equal(there, CountVectorizer(), texts)
    assert not list(tmp_path.glob(".*"))


def test_a_bag_is_counted_where_it_is(tmp_path, cluster):
    bag = pytest.importorskip("dask.bag")
    texts, labels = documents(300)
    pairs = bag.from_sequence(zip(texts, labels.tolist(), strict=True), npartitions=5)
    dataset = ingest(pairs, tmp_path / "store.zarr", engine=DaskEngine())
    assert_equal(dataset, CountVectorizer(), texts)
    assert matrix(dataset)[1].tolist() == labels.tolist()


def test_bad_documents_fail_or_are_left_out_and_told(tmp_path):
    lines = [{"text": "good day", "label": "a"}, {"text": None, "label": "a"}, {"text": "bad day"}]
    file = tmp_path / "mail.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + '\n{"text": \n{"text": "more days", "label": "b"}\n')
    with pytest.raises(InputError, match=r"mail\.jsonl, line 2.*on_error=.skip"):
        ingest(file, tmp_path / "store.zarr", label_column="label")
    assert not (tmp_path / "store.zarr").exists()
    with pytest.warns(DataWarning, match=r"3 of 5 documents were left out"):
        dataset = ingest(file, tmp_path / "store.zarr", label_column="label", on_error="skip")
    assert dataset.n_rows == 2
    report = dataset.text.report
    assert report["documents_seen"] == 5
    assert report["left_out"] == {"missing": 1, "label": 1, "broken": 1}
    assert [problem["where"].rpartition(" ")[2] for problem in report["examples"]] == ["2", "3", "4"]


def test_labels_given_for_all_documents_stay_with_theirs(tmp_path):
    with pytest.warns(DataWarning, match="1 of 3"):
        dataset = ingest(
            ["one two", None, "three four"],
            tmp_path / "s.zarr",
            labels=["x", "y", "z"],
            weights=[1, 2, 3],
            on_error="skip",
        )
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    assert dataset.classes[blocks[0].codes].tolist() == ["x", "z"]
    assert blocks[0].weights.tolist() == [1, 3]
    with pytest.raises(InputError, match="3 documents.*2 labels"):
        ingest(["one", "two", "three"], tmp_path / "t.zarr", labels=["x", "y"], token_pattern=r"\w+")


@pytest.mark.usefixtures("small_segments")
def test_an_interrupted_ingest_goes_on(tmp_path, monkeypatch):
    texts, _ = documents(300)
    for number in range(3):
        (tmp_path / f"part-{number}.txt").write_text("\n".join(texts[number * 100 : number * 100 + 100]) + "\n")
    monkeypatch.setattr("nfs_dask.documents.lines.PIECE_NBYTES", 100)
    from nfs_dask.ingestion import text_ingest as module

    real, counted = module.count_texts, []

    def counting(task):
        if len(counted) == 2:
            raise KeyboardInterrupt
        counted.append(task.number)
        return real(task)

    with monkeypatch.context() as patch:
        patch.setattr(module, "count_texts", counting)
        with pytest.raises(KeyboardInterrupt):
            ingest(str(tmp_path / "*.txt"), tmp_path / "store.zarr", engine=SerialEngine())
    left = ingest_folder(Folder.of(tmp_path / "store.zarr"))
    finished = [name for name in left.names() if name.endswith(".json")]
    assert len(finished) == 3, "two pieces, and what is being ingested"
    with pytest.raises(ResumeError, match="other settings"):
        ingest(str(tmp_path / "*.txt"), tmp_path / "store.zarr", ngrams=(1, 2), engine=SerialEngine())
    dataset = ingest(str(tmp_path / "*.txt"), tmp_path / "store.zarr", engine=SerialEngine())
    assert_equal(dataset, CountVectorizer(), texts)
    assert not left.names()


def test_appended_texts_are_read_as_the_first_ones_were(tmp_path):
    texts, labels = documents(120)
    first, more = texts[:80], texts[80:]
    ingest(first, tmp_path / "store.zarr", labels=labels[:80], ngrams=(1, 2), tfidf=True)
    dataset = ingest(more, tmp_path / "store.zarr", labels=labels[80:], ngrams=(1, 2), tfidf=True, append=True)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2)).fit(first)
    expected = vectorizer.transform(texts)
    found, given = matrix(dataset)
    assert (found != expected).nnz == 0
    assert given.tolist() == labels.tolist()
    with pytest.raises(InputError, match="ngrams"):
        ingest(more, tmp_path / "store.zarr", labels=labels[80:], tfidf=True, append=True)


def test_appended_hashed_columns_are_weighed_by_the_first_frequencies(tmp_path):
    texts, _ = documents(120)
    settings = {"hashed": 4, "tfidf": True, "norm": None}
    first = ingest(texts[:80], tmp_path / "store.zarr", **settings)
    plain = ingest(texts, tmp_path / "counts.zarr", hashed=4)
    df = (matrix(plain)[0][:80] > 0).sum(axis=0)
    expected = matrix(plain)[0].toarray() * (np.log(81 / (1 + np.asarray(df))) + 1)
    assert first.n_rows == 80
    whole = ingest(texts[80:], tmp_path / "store.zarr", **settings, append=True)
    np.testing.assert_allclose(matrix(whole)[0].toarray(), expected, rtol=1e-15)


def test_a_store_of_texts_is_a_store(tmp_path):
    texts, labels = documents()
    dataset = open_dataset(ingest(texts, tmp_path / "store.zarr", labels=labels).location)
    assert dataset.text.n_documents == len(texts)
    anndata = pytest.importorskip("anndata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = anndata.read_zarr(tmp_path / "store.zarr")
    assert read.var_names.tolist() == names(dataset)
    np.testing.assert_array_equal(read.X.toarray(), CountVectorizer().fit_transform(texts).toarray())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "no documents|at least one"),
        (["...", "!"], "no term is left"),
        ([""], "no term is left"),
        ([None], "missing"),
    ],
    ids=["nothing", "no terms", "empty", "missing"],
)
def test_what_makes_no_store_is_refused(tmp_path, texts, message):
    with pytest.raises(InputError, match=message):
        ingest(texts, tmp_path / "store.zarr", text_column=None)
    assert not list(tmp_path.iterdir())


def test_every_ascii_character_and_hostile_names(tmp_path):
    texts = [f"{c}{c} <script>{c}</script>" for c in string.printable]
    dataset = ingest(texts, tmp_path / "store.zarr", analyzer="char", ngrams=(1, 3))
    assert_equal(dataset, CountVectorizer(analyzer="char", ngram_range=(1, 3)), texts)
