"""`evaluate` in Python says what the command says, and what scikit-learn says of the predictions."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, precision_score, recall_score

import nfs_dask as nfs
from nfs_dask.errors import InputError
from tests.helpers.commands import as_json

rng = np.random.default_rng(4)
WORDS = np.array("ale beer cider dry east fruit green hops".split())
CODES = rng.integers(0, 3, 120)
LABELS = np.array(["ale", "beer", "cider"])[CODES]
TEXTS = [
    " ".join(rng.choice(WORDS, 6, p=np.roll(np.array([8, 4, 2, 1, 1, 1, 1, 1]) / 19, code))) for code in CODES.tolist()
]
X = np.array([[text.split().count(word) for word in WORDS] for text in TEXTS])
FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluating")
    nfs.ingest(TEXTS, folder / "texts.zarr", labels=LABELS)
    nfs.SparseMultinomialNB(k=5).fit(nfs.open_dataset(folder / "texts.zarr")).save(folder / "texts.model")
    nfs.ingest(X, folder / "rows.zarr", labels=LABELS)
    nfs.SparseMultinomialNB(k=5).fit(nfs.open_dataset(folder / "rows.zarr")).save(folder / "rows.model")
    FRAME.to_csv(folder / "texts.csv", index=False)
    FRAME.to_parquet(folder / "texts.parquet")
    return folder


def assert_right(found, model, rows, y=LABELS):
    predicted = model.predict(rows)
    assert found.n == len(y)
    assert found.accuracy == accuracy_score(y, predicted)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, predicted))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y, predicted))
    for name, score in (("precision", precision_score), ("recall", recall_score)):
        np.testing.assert_allclose(getattr(found, name), score(y, predicted, average=None))


ROWS = {
    "numpy": lambda _: (X, LABELS),
    "scipy": lambda _: (sparse.csr_array(X), LABELS),
    "pandas": lambda _: (pd.DataFrame(X), pd.Series(LABELS)),
    "dask": lambda _: (da.from_array(X, chunks=(50, 8)), da.from_array(LABELS, chunks=50)),
    "dataset": lambda folder: (nfs.open_dataset(folder / "rows.zarr"), None),
    "dataset and labels": lambda folder: (nfs.open_dataset(folder / "rows.zarr"), LABELS),
    "place": lambda folder: (folder / "rows.zarr", None),
}


@pytest.mark.parametrize("kind", ROWS)
def test_of_rows(kind, folder):
    model = nfs.load_model(folder / "rows.model")
    assert_right(nfs.evaluate(model, *ROWS[kind](folder)), model, X)


DOCUMENTS = {
    "list": lambda _: (TEXTS, {"y": LABELS}),
    "Series": lambda _: (pd.Series(TEXTS), {"y": pd.Series(LABELS)}),
    "frame": lambda _: (FRAME, {"label_column": "label"}),
    "frame and column": lambda _: (FRAME.rename(columns={"text": "t"}), {"label_column": "label", "text_column": "t"}),
    "column and labels": lambda _: (FRAME.rename(columns={"text": "t"}), {"y": LABELS, "text_column": "t"}),
    "bag": lambda _: (db.from_sequence(TEXTS, npartitions=4), {"y": LABELS}),
    "dask": lambda _: (dd.from_pandas(FRAME, npartitions=3), {"label_column": "label"}),
    "dask column": lambda _: (
        dd.from_pandas(FRAME.rename(columns={"text": "t"}), npartitions=3),
        {"label_column": "label", "text_column": "t"},
    ),
    "dask labels": lambda _: (dd.from_pandas(FRAME, 3)["text"], {"y": dd.from_pandas(FRAME, 3)["label"]}),
    "csv": lambda folder: (folder / "texts.csv", {"label_column": "label"}),
    "parquet": lambda folder: (str(folder / "texts.parquet"), {"label_column": "label"}),
    "dataset": lambda folder: (nfs.open_dataset(folder / "texts.zarr"), {}),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_of_documents(kind, folder):
    model = nfs.load_model(folder / "texts.model")
    given, options = DOCUMENTS[kind](folder)
    found = nfs.evaluate(model, given, **options)
    assert_right(found, model, TEXTS)
    told, here = (
        as_json("evaluate", folder / "texts.model", folder / "texts.csv", "--label-column", "label"),
        found.to_json(),
    )
    assert told.keys() == here.keys()
    for name in ("n", "accuracy", "interval", "balanced_accuracy", "per_class", "expected_calibration_error"):
        assert told[name] == pytest.approx(here[name]) if name != "per_class" else told[name] == here[name]
    assert told["confusion"] == here["confusion"].tolist()


def test_the_score_of_a_dataset_is_its_accuracy(folder):
    model, store = nfs.load_model(folder / "rows.model"), nfs.open_dataset(folder / "rows.zarr")
    assert model.score(store) == model.score(X, LABELS) == nfs.evaluate(model, store).accuracy
    assert model.score(store, LABELS) == model.score(X, LABELS)
    with pytest.raises(InputError, match="needs the labels of these rows as y="):
        model.score(X)
    unlabelled = nfs.Dataset(nfs.open_dataset(sparse.csr_array(X)).source)
    with pytest.raises(InputError, match="has no labels"):
        model.score(unlabelled)


def test_documents_without_a_label_do_not_count(folder):
    model = nfs.load_model(folder / "texts.model")
    some = [label if i % 4 else None for i, label in enumerate(LABELS.tolist())]
    there = [i for i in range(len(some)) if i % 4]
    assert_right(nfs.evaluate(model, TEXTS, some), model, [TEXTS[i] for i in there], LABELS[there])


def test_regions(tmp_path):
    frame = FRAME.assign(subject=TEXTS[::-1])
    store = nfs.ingest(frame, tmp_path / "s", label_column="label", regions=["subject", "text"])
    model = nfs.SparseMultinomialNB(k=5).fit(store)
    rows = frame[["subject", "text"]]
    assert_right(nfs.evaluate(model, frame, label_column="label"), model, rows)
    assert_right(nfs.evaluate(model, rows, LABELS), model, rows)


REFUSED = {
    "the model is a Pipeline; give a fitted estimator": lambda f: (__import__("sklearn").pipeline.Pipeline([]), X, {}),
    "is not fitted yet": lambda f: (nfs.SparseMultinomialNB(), X, {"y": LABELS}),
    "has no labels to compare with": lambda f: (nfs.load_model(f / "rows.model"), X, {}),
    "both say what the labels are": lambda f: (nfs.load_model(f / "rows.model"), X, {"y": LABELS, "label_column": "a"}),
    "name it where that is opened": lambda f: (
        nfs.load_model(f / "rows.model"),
        nfs.open_dataset(f / "rows.zarr"),
        {"label_column": "label"},
    ),
    "encoding= says how documents are read": lambda f: (nfs.load_model(f / "rows.model"), X, {"encoding": "latin-1"}),
    "X is files, whose labels are in them": lambda f: (
        nfs.load_model(f / "texts.model"),
        f / "texts.csv",
        {"y": LABELS},
    ),
    "a Bag of Dask brings no labels here; give them as y=": lambda f: (
        nfs.load_model(f / "texts.model"),
        db.from_sequence(list(zip(TEXTS, LABELS.tolist(), strict=True)), npartitions=4),
        {},
    ),
    "the documents have no labels": lambda f: (nfs.load_model(f / "texts.model"), TEXTS, {}),
    "was fitted to a matrix": lambda f: (nfs.load_model(f / "rows.model"), TEXTS, {"y": LABELS}),
    "there are 120 rows but 3": lambda f: (nfs.load_model(f / "texts.model"), TEXTS, {"y": LABELS[:3]}),
    "3 features": lambda f: (nfs.load_model(f / "rows.model"), X[:, :3], {"y": LABELS}),
    "labels of the same kind": lambda f: (nfs.load_model(f / "texts.model"), TEXTS, {"y": CODES}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_judged_is_refused_in_words(message, folder: Path):
    model, given, options = REFUSED[message](folder)
    with pytest.raises((InputError, ValueError), match=message):
        nfs.evaluate(model, given, **options)


def test_it_is_printed_as_a_person_reads_it() -> None:
    X, y = np.array([[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]), ["tea", "tea", "coffee", "coffee"]
    found = nfs.evaluate(nfs.SparseMultinomialNB(k=2).fit(X, y), X, ["tea", "coffee", "coffee", "coffee"])
    assert str(found).splitlines() == [
        "accuracy 0.7500 (95 % between 0.3006 and 0.9544) on 4 documents",
        "coffee: precision 1.0000, recall 0.6667; tea: precision 0.5000, recall 1.0000",
    ]
