"""Labels that are texts in one format and numbers in another are the same where the texts write these numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from nfs_dask.errors import DataWarning, InputError
from tests.helpers.commands import as_json, run

pytest.importorskip("pyarrow")
TEXTS = ["good film", "good plot and good cast", "bad film", "bad plot", "good", "bad cast", "odd"] * 4
STARS = np.array([10, 10, 9, 9, 10, 9, 10] * 4)  # in the order of numbers 9, 10; in that of texts "10", "9"
TEST = ["good cast", "bad", "bad good good", "bad bad film", "plot"]
TRUE = np.array([10, 9, 10, 10, 9])
WRITTEN = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}
VECTORIZER = CountVectorizer().fit(TEXTS)
PEER = MultinomialNB().fit(VECTORIZER.transform(TEXTS), STARS)
PREDICTED = PEER.predict(VECTORIZER.transform(TEST))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    for kind, write in WRITTEN.items():
        for name, texts, labels in (("train", TEXTS, STARS), ("test", TEST, TRUE)):
            frame = pd.DataFrame({"text": texts, "stars": labels})
            write(frame, folder / f"{name}.{kind}")
            nfs.ingest(
                folder / f"{name}.{kind}",
                folder / f"{name}-{kind}.zarr",
                label_column="stars",
                vocabulary=sorted(VECTORIZER.vocabulary_),
            )
        train = nfs.open_dataset(folder / f"train-{kind}.zarr")
        nfs.SparseMultinomialNB(k="all").fit(train).save(folder / f"{kind}.model")
    return folder


@pytest.mark.parametrize("asked", WRITTEN)
@pytest.mark.parametrize("fitted", WRITTEN)
def test_models_of_any_format_judge_documents_of_any_other(folder, fitted, asked):
    model = nfs.load_model(folder / f"{fitted}.model")
    store, file = folder / f"test-{asked}.zarr", folder / f"test.{asked}"
    truth = accuracy_score(TRUE, PREDICTED)
    confusion = confusion_matrix(TRUE, PREDICTED, labels=[9, 10])
    found = nfs.evaluate(model, nfs.open_dataset(store))
    assert found.accuracy == model.score(nfs.open_dataset(store)) == truth
    assert found.balanced_accuracy == pytest.approx(np.mean(confusion.diagonal() / confusion.sum(axis=1)))
    order = [list(map(str, values)).index for values in (found.labels, found.classes)]
    for i, label in enumerate(("9", "10")):
        for j, predicted in enumerate(("9", "10")):
            assert found.confusion[order[0](label), order[1](predicted)] == confusion[i, j]
    assert nfs.evaluate(model, file, label_column="stars").accuracy == truth
    for place in (store, file):
        assert as_json("evaluate", folder / f"{fitted}.model", place)["accuracy"] == truth
        predicted = as_json("predict", folder / f"{fitted}.model", place)["labels"]
        assert list(map(int, predicted)) == PREDICTED.tolist()
    run("report", folder / f"{fitted}.model", folder / f"{fitted}-{asked}.html", "--data", store)


@pytest.mark.parametrize("fitted", WRITTEN)
@pytest.mark.parametrize("given", [int, float, str, object])
def test_labels_in_memory_are_matched_too(folder, fitted, given):
    model = nfs.load_model(folder / f"{fitted}.model")
    labels = np.array([10, 9, 10, 10, 9]).astype(given)
    if given is float and fitted == "csv":
        labels = labels.tolist()
    truth = accuracy_score(TRUE, PREDICTED)
    assert model.score(TEST, labels) == truth
    assert nfs.evaluate(model, TEST, labels).accuracy == truth


def test_documents_of_another_format_are_added_to_a_model(folder):
    both = MultinomialNB().fit(VECTORIZER.transform(TEXTS + TEST), np.concatenate((STARS, TRUE)))
    for fitted, added in (("csv", "parquet"), ("parquet", "csv")):
        model = nfs.SparseMultinomialNB(k="all").fit(nfs.open_dataset(folder / f"train-{fitted}.zarr"))
        model.partial_fit(nfs.open_dataset(folder / f"test-{added}.zarr"))
        columns = [list(map(str, model.classes_)).index(label) for label in ("9", "10")]
        expected = both.predict_proba(VECTORIZER.transform(TEST))
        np.testing.assert_allclose(model.predict_proba(TEST)[:, columns], expected, rtol=1e-9)


def test_booleans_and_numbers_with_zeros_are_what_they_write():
    X, truth = np.array([[3, 0], [0, 3], [2, 0], [0, 2]]), [True, False, True, False]
    model = nfs.SparseMultinomialNB(k="all").fit(X, truth)
    for labels in (["True", "False"] * 2, ["true", "false"] * 2, ["1", "0"] * 2, ["1.0", "0.0"] * 2, [1, 0] * 2):
        assert nfs.evaluate(model, X, labels).accuracy == model.score(X, labels) == 1.0
    model = nfs.SparseMultinomialNB(k="all").fit(X, ["007", "8", "007", "8"])
    assert nfs.evaluate(model, X, [7, 8, 7, 8]).accuracy == 1.0
    assert nfs.evaluate(model, X, [7.0, 8.0, 7.0, 8.0]).accuracy == 1.0


def test_what_is_ambiguous_or_no_number_is_refused():
    X = np.array([[3, 0], [0, 3], [2, 0], [0, 2]])
    both = nfs.SparseMultinomialNB(k="all").fit(X, ["1", "01", "1", "01"])
    with pytest.raises(InputError, match="the classes '01' and '1' of the model both write the number 1"):
        nfs.evaluate(both, X, [1, 1, 1, 1])
    numbers = nfs.SparseMultinomialNB(k="all").fit(X, [0, 1, 0, 1])
    for ask in (numbers.score, lambda X, y: nfs.evaluate(numbers, X, y)):
        with pytest.raises(InputError, match="'spam' writes no number; give labels of the same kind"):
            ask(X, ["0", "spam", "0", "1"])
    with pytest.warns(DataWarning, match="labels the model was not fitted to, '2'"):
        found = nfs.evaluate(nfs.SparseMultinomialNB(k="all").fit(X, ["0", "1", "0", "1"]), X, [0, 1, 2, 1])
    assert found.accuracy == 0.75
    texts = nfs.SparseMultinomialNB(k="all").fit(X, ["ham", "spam", "ham", "spam"])
    for ask in (texts.score, lambda X, y: nfs.evaluate(texts, X, y)):
        with pytest.raises(InputError, match="'ham' writes no number; give labels of the same kind"):
            ask(X, [0, 1, 0, 1])
    with pytest.raises(InputError, match="'ham' writes no number"):
        texts.partial_fit(X, [0, 1, 0, 1])
