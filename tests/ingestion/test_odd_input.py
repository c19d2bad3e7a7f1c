"""What users give by mistake, or by way of other programs: it is refused in words, or read as it is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.sources.labels import encode
from tests.helpers import stored

TEXTS = ["red apple pie", "blue sky high", "red sky at night", "apple apple blue"]
LABELS = ["a", "b", "b", "a"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.zarr"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vocabulary": ["red", "\ud800"]}, "UTF-8 cannot hold"),
        ({"encoding": None}, "encoding=None cannot be read"),
        ({"labels": (label for label in LABELS)}, "labels= is a generator; give a list or an array"),
        ({"labels": "abba"}, "labels= is a str"),
        ({"labels": {"a", "b", "c", "d"}}, "labels= is a set"),
        ({"labels": dict.fromkeys(TEXTS, "a")}, "labels= is a dict"),
        ({"labels": ["a", None, "b", "a"]}, "labels= has none for document 1;"),
        ({"labels": [1, 2, 1, float("nan")]}, "labels= has none for document 3;"),
        ({"weights": iter([1, 1, 1, 1])}, "weights= is a list_iterator"),
    ],
)
def test_is_refused_in_words(store: Path, given: dict[str, Any], message: str) -> None:
    source: Any = TEXTS
    if "encoding" in given:
        source = store.with_name("texts.txt")
        source.write_text("\n".join(TEXTS))
    with pytest.raises(InputError, match=message):
        nfs.ingest(source, store, **given)
    assert not store.exists()


def test_missing_label_of_a_document_that_is_left_out_is_not_missed(store: Path) -> None:
    with pytest.warns(match="1 of 5 documents were left out"):
        dataset = nfs.ingest([None, *TEXTS], store, labels=[None, *LABELS], on_error="skip")
    assert stored.labels(dataset).tolist() == LABELS


def test_missing_label_is_numbered_among_all_documents(store: Path) -> None:
    with pytest.raises(InputError, match="none for document 2;"):
        nfs.ingest([None, *TEXTS], store, labels=["a", "a", None, "b", "a"], on_error="skip")


@pytest.mark.parametrize("what", ["label", "weight"])
def test_values_and_their_column_are_not_both_taken(store: Path, what: str) -> None:
    frame = pd.DataFrame({"text": TEXTS, "own": [1, 2, 2, 1]})
    with pytest.raises(InputError, match=f"{what}s= and {what}_column= both say"):
        nfs.ingest(frame, store, text_column="text", **{f"{what}s": [2, 2, 1, 1], f"{what}_column": "own"})


@pytest.mark.parametrize("gives", [None, 5, "red sky", b"red sky"])
def test_tokenizer_that_gives_no_tokens(store: Path, gives: Any) -> None:
    with pytest.raises(InputError, match="the tokenizer gave .*; let it give a list of strings"):
        nfs.ingest(TEXTS, store, tokenizer=lambda text: gives)


def test_parquet_of_pandas_whose_columns_have_no_values(tmp_path: Path, store: Path) -> None:
    pd.DataFrame({"text": [], "y": []}, dtype=object).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"text": TEXTS, "y": LABELS}).to_parquet(tmp_path / "1.parquet")
    dataset = nfs.ingest(tmp_path / "*.parquet", store, label_column="y")
    assert stored.labels(dataset).tolist() == LABELS


def test_parquet_whose_labels_are_all_missing(tmp_path: Path, store: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS, "y": LABELS}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"text": ["green"], "y": pa.nulls(1)}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match="1.parquet, row 0: the document has no label"):
        nfs.ingest(tmp_path / "*.parquet", store, label_column="y")
    with pytest.warns(match="1 of 5 documents were left out: 1 without a label"):
        dataset = nfs.ingest(tmp_path / "*.parquet", store, label_column="y", on_error="skip")
    assert stored.labels(dataset).tolist() == LABELS


def test_a_place_that_is_none() -> None:
    with pytest.raises(InputError, match="None is no place"):
        nfs.ingest(TEXTS, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="None is no place"):
        nfs.load_model(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [[float("inf"), 10**20], [10**20, 1.0]])
def test_labels_beyond_numpy_among_floats(labels: list[Any]) -> None:
    with pytest.raises(InputError, match="does not fit 64 bits|infinite"):
        encode(labels)


def test_hashing_takes_memory_for_the_terms_there_are() -> None:
    matrix = nfs.TextVectorizer(hashed=28).fit_transform(TEXTS)
    assert matrix.shape == (4, 2**28)
    weights = nfs.TextVectorizer(hashed=28, tfidf=True).fit_transform(TEXTS)
    np.testing.assert_array_equal(weights.indices, matrix.indices)
    np.testing.assert_array_equal(matrix.sum(axis=1), [3, 3, 4, 3])


def test_predicting_what_is_no_text(store: Path) -> None:
    model = nfs.SparseMultinomialNB(4).fit(nfs.ingest(TEXTS, store, labels=LABELS))
    for given, message in (([None, "red"], "document 0 is None, not a string"), ([b"red"], "decode it first")):
        with pytest.raises(InputError, match=message):
            model.predict(given)


def test_predicting_no_texts(store: Path) -> None:
    model = nfs.SparseMultinomialNB(4).fit(nfs.ingest(TEXTS, store, labels=LABELS))
    assert model.predict([]).tolist() == []
    assert model.predict_proba([]).shape == (0, 2)


def test_a_store_has_no_more_columns_than_it_can_name(tmp_path):
    with pytest.raises(nfs.InputError, match="hashed=29; give the bits of a column number, 1 to 28"):
        nfs.ingest(TEXTS, tmp_path / "s.zarr", hashed=29)
    assert not list(tmp_path.iterdir())


def test_documents_without_labels_are_not_appended_to_those_that_have_some(tmp_path):
    nfs.ingest(["good day", "bad day"], tmp_path / "s.zarr", labels=["a", "b"])
    with pytest.raises(nfs.InputError, match="have none; name their column"):
        nfs.ingest(["red day"], tmp_path / "s.zarr", append=True)
