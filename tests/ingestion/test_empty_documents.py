"""An empty text is a document without words, wherever it lies; only a text that is missing is bad input."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from nfs_dask.errors import DataWarning, InputError
from tests.helpers import stored

TEXTS = ["", "cheap pills", "  ", "team meeting", "cheap watches", "", "meeting moved", "\t", "buy cheap pills", ""]
LABELS = ["ham", "spam", "spam", "ham", "spam", "spam", "ham", "ham", "spam", "ham"]
N_EMPTY = 5
MISSING = 3  # which text is missing, where one is


def write_csv(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    with open(folder / "mail.csv", "w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *zip(texts, LABELS, strict=True)])
    return folder / "mail.csv", {"label_column": "label"}


def write_quoted(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    with open(folder / "mail.csv", "w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])
    return folder / "mail.csv", {"labels": LABELS}


def write_jsonl(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    rows = [json.dumps({"text": text, "label": label}) for text, label in zip(texts, LABELS, strict=True)]
    (folder / "mail.jsonl").write_text("\n".join(rows) + "\n")
    return folder / "mail.jsonl", {"label_column": "label"}


def write_parquet(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    pd.DataFrame({"text": texts, "label": LABELS}).to_parquet(folder / "mail.parquet")
    return folder / "mail.parquet", {"label_column": "label"}


def write_lines(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    (folder / "mail.txt").write_text("\n".join(texts) + "\n")  # which ends in a blank line
    return folder / "mail.txt", {"labels": LABELS}


def write_folder(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    for number, (text, label) in enumerate(zip(texts, LABELS, strict=True)):
        (folder / "mail" / label).mkdir(parents=True, exist_ok=True)
        (folder / "mail" / label / f"{number}.txt").write_text(text)
    return folder / "mail", {}


def write_archive(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    write_folder(folder, texts)
    with tarfile.open(folder / "mail.tar.gz", "w:gz") as archive:
        for file in sorted((folder / "mail").rglob("*.txt")):
            archive.add(file, file.relative_to(folder))
    return f"{folder}/mail.tar.gz/mail", {}


def bag(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    import dask.bag as db

    return db.from_sequence(list(zip(texts, LABELS, strict=True)), npartitions=3), {}


def dask_frame(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame({"text": texts, "label": LABELS}), npartitions=3), {"label_column": "label"}


def frame(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    return pd.DataFrame({"text": texts, "label": LABELS}), {"label_column": "label"}


def in_memory(folder: Path, texts: list[Any]) -> tuple[Any, dict[str, Any]]:
    return texts, {"labels": LABELS}


TABLES = [write_jsonl, write_parquet, bag, dask_frame, frame, in_memory]  # which know texts that are missing
BY_FOLDER = [write_folder, write_archive]
READERS = [write_csv, write_quoted, write_lines, *TABLES, *BY_FOLDER]


@pytest.mark.parametrize("given", READERS)
def test_empty_texts_are_rows_of_their_labels(tmp_path, given):
    source, options = given(tmp_path, TEXTS)
    dataset = nfs.ingest(source, tmp_path / "store.zarr", **options)
    order = np.argsort(LABELS, kind="stable") if given in BY_FOLDER else np.arange(len(TEXTS))
    stored.assert_same_matrix(dataset, CountVectorizer().fit(TEXTS).transform([TEXTS[i] for i in order]))
    assert stored.labels(dataset).tolist() == [LABELS[i] for i in order]
    report = dataset.text.report
    assert (report["documents_seen"], report["empty"], report["left_out"]) == (len(TEXTS), N_EMPTY, {})


@pytest.mark.parametrize("given", TABLES)
def test_missing_texts_are_refused_or_left_out_with_their_labels(tmp_path, given):
    texts = [None if i == MISSING else text for i, text in enumerate(TEXTS)]
    source, options = given(tmp_path, texts)
    with pytest.raises(InputError, match=r"the text is missing.*on_error"):
        nfs.ingest(source, tmp_path / "store.zarr", **options)
    with pytest.warns(DataWarning, match="1 of 10 documents were left out: 1 without a text"):
        dataset = nfs.ingest(source, tmp_path / "store.zarr", **options, on_error="skip")
    good = [text for text in texts if text is not None]
    stored.assert_same_matrix(dataset, CountVectorizer().fit(good).transform(good))
    assert stored.labels(dataset).tolist() == LABELS[:MISSING] + LABELS[MISSING + 1 :]
    assert (dataset.text.report["empty"], dataset.text.report["left_out"]) == (N_EMPTY, {"missing": 1})


@pytest.mark.parametrize("norm", ["l2", None])
def test_empty_documents_count_in_shares_and_idf(tmp_path, norm):
    settings = {"min_df": 0.15, "norm": norm}  # two of ten documents, but one of the five that have words
    dataset = nfs.ingest(TEXTS, tmp_path / "store.zarr", tfidf=True, **settings)
    stored.assert_same_matrix(dataset, TfidfVectorizer(**settings).fit(TEXTS).transform(TEXTS))
    assert stored.names(dataset) == ["cheap", "meeting", "pills"]


def test_an_empty_document_is_predicted_by_the_prior(tmp_path):
    dataset = nfs.ingest([*TEXTS, ""], tmp_path / "store.zarr", labels=[*LABELS, "spam"])
    X = stored.matrix(dataset)
    ours = nfs.SparseMultinomialNB(k="all").fit(dataset)
    theirs = MultinomialNB().fit(X, [*LABELS, "spam"])
    np.testing.assert_allclose(ours.class_log_prior_, theirs.class_log_prior_)
    np.testing.assert_allclose(ours.predict_proba([""])[0], [5 / 11, 6 / 11])
    texts = ["", "cheap", " ", "words nobody saw"]
    rows = CountVectorizer(vocabulary=stored.names(dataset)).transform(texts)
    np.testing.assert_allclose(ours.predict_proba(texts), theirs.predict_proba(rows))


def test_documents_are_read_alike_when_a_model_is_asked(tmp_path):
    texts = pd.DataFrame({"subject": ["cheap", None, "team", ""], "body": [None, "meeting", "moved", None]})
    source = texts.assign(label=["spam", "ham", "ham", "spam"])
    dataset = nfs.ingest(source, tmp_path / "s.zarr", regions=["subject", "body"], label_column="label")
    model = nfs.SparseMultinomialNB(k="all").fit(dataset)
    assert dataset.text.report["empty"] == 1
    expected = model.predict_proba(stored.matrix(dataset))
    for given in (texts, list(texts.itertuples(index=False, name=None)), texts.to_dict("records")):
        np.testing.assert_array_equal(model.predict_proba(given), expected)
    with pytest.raises(InputError, match=r"document 1, 'subject' is None.*'' for an empty one"):
        model.predict([("a", "b"), (None, None)])


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, np.nan])
def test_a_text_that_is_missing_is_not_predicted(tmp_path, missing):
    model = nfs.SparseMultinomialNB(k=2).fit(nfs.ingest(TEXTS, tmp_path / "s.zarr", labels=LABELS))
    assert len(model.predict(["", "cheap"])) == 2
    for given in (
        ["cheap", missing],
        np.array(["cheap", missing], object),
        pd.Series(["cheap", missing], dtype=object),
    ):
        with pytest.raises(InputError, match="document 1 is .*, not a string; give a string for each, '' for an empty"):
            model.predict(given)
