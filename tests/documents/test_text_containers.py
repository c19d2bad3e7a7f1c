"""The same texts in whatever a user has them in: ingested, vectorized and predicted as a list of them is."""

from __future__ import annotations

import collections
import sys
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import nfs_dask as nfs
from nfs_dask.documents.in_memory import MemoryDocuments, batches
from nfs_dask.documents.open_documents import is_documents, open_documents
from nfs_dask.errors import InputError

pa = pytest.importorskip("pyarrow")
TEXTS = ["green tea", "", "black coffee with milk", "Grün 綠 ß", "tea"] * 5
LABELS = ["tea", "none", "coffee", "none", "tea"] * 5


def library(name: str) -> Any:
    return pytest.importorskip(name)


COLUMNS = {
    "tuple": tuple,
    "numpy": np.array,
    "objects": lambda texts: np.array(texts, object),
    "numpy strings": lambda texts: np.array(texts, np.dtypes.StringDType()),
    "masks nothing": lambda texts: np.ma.masked_array(texts, [False] * len(texts)),
    "series": lambda texts: pd.Series(texts, index=range(9, 9 + len(texts))),
    "index": pd.Index,
    "index of objects": lambda texts: pd.Index(texts, dtype=object),
    "array of pandas": lambda texts: pd.array(texts, dtype="string"),
    "categories": pd.Categorical,
    "series of arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.large_string())),
    "pyarrow": pa.array,
    "large pyarrow": lambda texts: pa.array(texts, pa.large_string()),
    "views of pyarrow": lambda texts: pa.array(texts, pa.string_view()),
    "pyarrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "pyarrow chunks": lambda texts: pa.chunked_array([texts[:3], [], texts[3:]], pa.string()),
    "pyarrow part": lambda texts: pa.array(["x", *texts, "y"])[1:-1],
    "polars": lambda texts: library("polars").Series(texts),
    "polars categories": lambda texts: library("polars").Series(texts, dtype=library("polars").Categorical),
    "xarray": lambda texts: library("xarray").DataArray(np.array(texts)),
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pyarrow": pa.table,
    "pyarrow batch": pa.RecordBatch.from_pydict,
    "polars": lambda columns: library("polars").DataFrame(columns),
}
PLAIN = CountVectorizer().fit(TEXTS)
EXPECTED = PLAIN.transform(TEXTS).toarray()


def rows(source: Any) -> np.ndarray:
    return np.concatenate(
        [np.asarray(b.texts[0].to_list(), object) for p in range(source.n_pieces) for b in source.batches(p)]
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return nfs.SparseMultinomialNB(k=4).fit(nfs.ingest(TEXTS, tmp_path_factory.mktemp("s") / "s.zarr", labels=LABELS))


@pytest.mark.parametrize("kind", COLUMNS)
def test_texts_in_every_kind_of_column(kind, model, tmp_path):
    given = COLUMNS[kind](TEXTS)
    assert is_documents(given)
    assert rows(open_documents(given)).tolist() == TEXTS
    dataset = nfs.ingest(given, tmp_path / "s.zarr", labels=COLUMNS[kind](LABELS), weights=1.0)
    assert dataset.names(np.arange(dataset.n_features)) == PLAIN.get_feature_names_out().tolist()
    assert dataset.classes.tolist() == ["coffee", "none", "tea"]
    np.testing.assert_array_equal(nfs.TextVectorizer().fit_transform(given).toarray(), EXPECTED)
    np.testing.assert_array_equal(nfs.TextVectorizer().fit(given).transform(given).toarray(), EXPECTED)
    np.testing.assert_array_equal(model.predict_proba(given), model.predict_proba(TEXTS))
    with pytest.raises(InputError, match="X holds texts, and a fit takes numbers"):
        nfs.SparseMultinomialNB().fit(given, LABELS)


@pytest.mark.parametrize("kind", FRAMES)
def test_texts_in_every_kind_of_frame(kind, tmp_path):
    given = FRAMES[kind]({"text": TEXTS, "title": LABELS, "class": LABELS, "weight": [1, 2, 3, 4, 5] * 5})
    assert is_documents(given)
    plain = pd.DataFrame({"text": TEXTS, "title": LABELS, "class": LABELS, "weight": [1, 2, 3, 4, 5] * 5})
    options = {"regions": ["title", "text"], "label_column": "class", "weight_column": "weight"}
    dataset = nfs.ingest(given, tmp_path / "s.zarr", **options)
    assert dataset.fingerprint == nfs.ingest(plain, tmp_path / "plain.zarr", **options).fingerprint
    model = nfs.SparseMultinomialNB(k=4).fit(dataset)
    np.testing.assert_array_equal(model.predict_proba(given), model.predict_proba(plain))
    with pytest.raises(InputError, match="'text', 'title', 'class', 'weight'; text_column='body' is not among them"):
        nfs.ingest(given, tmp_path / "t.zarr", text_column="body")
    with pytest.raises(InputError, match=r"of a DataFrame give the column of texts"):
        nfs.TextVectorizer().fit(given)


@pytest.mark.parametrize("kind", ["pyarrow", "pyarrow dictionary", "pyarrow chunks", "polars", "polars categories"])
def test_missing_ones_are_named_in_every_kind(kind, model):
    given = COLUMNS[kind]([*TEXTS[:4], None])
    with pytest.raises(InputError, match="document 4: the text is missing"):
        rows(open_documents(given))
    with pytest.raises(InputError, match="document 4 is None, not a string"):
        model.predict(given)
    with pytest.raises(InputError, match="document 4 is None, not a string"):
        nfs.TextVectorizer().fit(given)


def chunked(texts: list[str], kind: Any) -> Any:
    return library("dask.array").from_array(np.array(texts, kind), chunks=7)


CHUNKS = {
    "strings": lambda texts: chunked(texts, str),
    "objects": lambda texts: chunked(texts, object),
    "numpy strings": lambda texts: chunked(texts, np.dtypes.StringDType()),
    "xarray": lambda texts: library("xarray").DataArray(chunked(texts, str)),
}


@pytest.mark.parametrize("kind", CHUNKS)
def test_texts_in_chunks(kind, model, tmp_path):
    given = CHUNKS[kind](TEXTS)
    assert is_documents(given)
    dataset = nfs.ingest(given, tmp_path / "s.zarr", labels=LABELS)
    np.testing.assert_array_equal(nfs.SparseMultinomialNB("all").fit(dataset).transform(dataset).toarray(), EXPECTED)
    np.testing.assert_array_equal(nfs.TextVectorizer().fit_transform(given).compute().toarray(), EXPECTED)
    np.testing.assert_array_equal(model.predict_proba(given).compute(), model.predict_proba(TEXTS))


def test_chunks_that_hold_no_texts_are_refused(tmp_path):
    with pytest.raises(InputError, match="item 0 of partition 0 is .*, not a string"):
        nfs.ingest(chunked([1, 2], object), tmp_path / "s.zarr")
    with pytest.raises(InputError, match="documents were given as an Array; accepted are"):
        open_documents(chunked([["a", "b"]], str))


def test_one_label_for_all_is_refused(tmp_path):
    with pytest.raises(InputError, match="labels= is a ndarray; give a list or an array, one for each document"):
        nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=np.array("tea"))


def test_masked_texts_are_refused(model, tmp_path):
    masked = np.ma.masked_array(TEXTS, np.arange(len(TEXTS)) == 1)
    for take in (open_documents, nfs.TextVectorizer().fit, model.predict, lambda X: nfs.ingest(X, tmp_path / "s")):
        with pytest.raises(InputError, match="masked array"):
            take(masked)


def test_numbers_in_columns_are_no_documents():
    for numbers in (pa.array([1, 2]), library("polars").Series([1, 2])):
        assert not is_documents(numbers)
        with pytest.raises(InputError, match="document 0 is .*, not a string"):
            rows(MemoryDocuments(numbers, open_documents(["a"]).columns))


ONE_BY_ONE = {
    "generator": lambda texts: (text for text in texts),
    "map": lambda texts: map(str, texts),
    "deque": collections.deque,
    "UserList": collections.UserList,
    "values of a dict": lambda texts: dict(enumerate(texts)).values(),
    "keys of a dict": dict.fromkeys,
}


@pytest.mark.parametrize("kind", ONE_BY_ONE)
def test_texts_that_come_one_by_one(kind, model, tmp_path):
    texts = ["green tea", "", "black coffee", "tea"]
    make = ONE_BY_ONE[kind]
    given = (lambda: make(texts).keys()) if kind == "keys of a dict" else (lambda: make(texts))
    dataset = nfs.ingest(given(), tmp_path / "s.zarr", labels=LABELS[:4])
    assert dataset.n_rows == 4
    np.testing.assert_array_equal(model.predict_proba(given()), model.predict_proba(texts))
    np.testing.assert_array_equal(model.transform(given()).toarray(), model.transform(texts).toarray())
    plain = CountVectorizer().fit_transform(texts).toarray()
    np.testing.assert_array_equal(nfs.TextVectorizer().fit_transform(given()).toarray(), plain)


PLACELESS = [(set(TEXTS), r"sorted\(X\)"), (frozenset(TEXTS), r"sorted\(X\)"), ({0: "a"}, r"list\(X.values\(\)\)")]
NOT_TEXTS = [
    ([b"a"], "a bytes.*decode it"),
    ([bytearray(b"a")], "a bytearray.*decode it"),
    (np.array(["a"], "S"), "a bytes.*decode it"),
    ([["green", "tea"]], "a list.*join its words"),
    ([("green tea", "tea")], "a tuple.*labels"),
    (["tea", 1], "is 1, not a string"),
]


@pytest.mark.parametrize(("given", "message"), PLACELESS, ids=str)
def test_what_has_no_order_is_refused(given, message, model, tmp_path):
    for take in (model.predict, nfs.TextVectorizer().fit_transform, lambda X: nfs.ingest(X, tmp_path / "s.zarr")):
        with pytest.raises(InputError, match=rf"whose members have no place; give a list, such as {message}"):
            take(given)


@pytest.mark.parametrize(("given", "message"), NOT_TEXTS, ids=str)
def test_what_is_given_in_place_of_a_text_is_named(given, message, model, tmp_path):
    for take in (model.predict, nfs.TextVectorizer().fit, lambda X: nfs.ingest(X, tmp_path / "s.zarr")):
        with pytest.raises(InputError, match=rf"document \d is ({message})|{message}"):
            take(given)


@pytest.mark.parametrize("none", [[], (), np.array([], str), pd.Series([], dtype=object), pa.array([], pa.string())])
def test_no_texts_have_no_classes(none, model):
    assert model.predict(none).tolist() == []
    assert nfs.TextVectorizer(hashed=4).transform(none).shape == (0, 16)


def test_one_text_in_place_of_many_is_refused(tmp_path, model):
    for one in ("green tea", np.array("green tea")):
        for take in (model.predict, nfs.TextVectorizer().fit, lambda X: nfs.ingest(X, tmp_path / "s.zarr")):
            with pytest.raises(InputError, match=r"put it into a list|one string for each document|0 dimension"):
                take(one)


def test_the_column_that_is_meant_is_named(tmp_path):
    frame = pd.DataFrame({"stars": [1, 2], "body": ["green tea", "tea"]})
    with pytest.raises(InputError, match=r"give the column of texts, such as X\['body'\]"):
        nfs.TextVectorizer().fit(frame)
    with pytest.raises(InputError, match="has the columns 'stars', 'body', none of them 'text'; .* text_column='body'"):
        nfs.ingest(frame, tmp_path / "s.zarr")


@pytest.mark.parametrize(
    "texts", [["a", "", "d\u00e9j\u00e0 vu", "\x00 \U0001f600"], [np.str_("a"), "b"], [], ["a"] * 100_000]
)
def test_texts_are_the_same_whether_arrow_encodes_them_or_python(texts, monkeypatch):
    pytest.importorskip("pyarrow")
    by_arrow = list(batches(texts))
    monkeypatch.delitem(sys.modules, "pyarrow")
    by_python = list(batches(texts))
    assert [one.to_list() for one in by_arrow] == [one.to_list() for one in by_python]
    assert list(chain.from_iterable(one.to_list() for one in by_arrow)) == texts
    for one, other in zip(by_arrow, by_python, strict=True):  # the same kernels take both
        assert one.text.flags.writeable == other.text.flags.writeable and one.offsets.dtype == other.offsets.dtype


def test_a_surrogate_is_named_whoever_encodes(monkeypatch):
    pytest.importorskip("pyarrow")
    for _ in range(2):
        with pytest.raises(InputError, match="document 1 has a lone surrogate"):
            list(batches(["a", "\ud800"]))
        monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
