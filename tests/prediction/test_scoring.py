"""What models say of documents, wherever they lie: with probabilities where a model has them, with margins always."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dask.array as da
import dask.bag as bag
import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.documents.open_documents import open_documents
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import DataWarning
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.model import Evidence, Model
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.prediction.column_selection import select
from nfs_dask.prediction.evaluation import Evaluation, evaluate
from nfs_dask.prediction.model_rows import ReadDocuments
from nfs_dask.prediction.reader import Reader, TextSource
from nfs_dask.prediction.scoring import Verdicts, score, verdicts
from nfs_dask.sources import block_cuts as cutting
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings

WORDS = ("cup", "milk", "tea")
COMMON = {
    "classes": np.array(["a", "b", "c"]),
    "class_count": np.array([3.0, 5.0, 2.0]),
    "n_features": 6,
    "support": np.array([1, 3, 4]),
    "names": WORDS,
    "text": TextFeatures(TextSettings(), n_terms=6, n_documents=10, terms=WORDS),
}
CENTERS = np.array([[2.0, 0.5, 0.0], [0.0, 2.0, 0.5], [0.5, 0.0, 2.0]])
SPREAD = {"variances": np.array([0.5, 1.0, 2.0]), "covariance": "within"}


def center_model(method: str, **changes) -> CentersModel:
    evidence = Evidence(3.0, 0.0, True, None, 1)
    return CentersModel(
        method=method, evidence=evidence, centers=CENTERS, pooled=CENTERS.mean(axis=0), **COMMON | changes
    )


MODELS: dict[str, Model] = {
    "l1": center_model("l1"),
    "l2": center_model("l2"),
    "mahalanobis": center_model("mahalanobis", **SPREAD),
    "an unseen class": center_model("l2", class_count=np.array([3.0, 0.0, 2.0])),
    "multinomial": NaiveBayesModel(
        method="multinomial",
        evidence=Evidence(-3.0, 0.0, True, None, 1),
        class_log_prior=np.log([0.3, 0.5, 0.2]),
        alpha=1.0,
        present=np.log((CENTERS + 1) / 9),
        **COMMON,
    ),
}


def texts(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice([*WORDS, "the"], rng.integers(1, 9))) for _ in range(n)]


def counts(documents: list[str]) -> Array:
    X = np.zeros((len(documents), 6))
    X[:, [1, 3, 4]] = [[text.split().count(word) for word in WORDS] for text in documents]
    return X


@pytest.fixture
def dataset(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A hundred labelled rows in several blocks."""
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 700)
    source = MatrixSource(sparse.csr_array(counts(texts(100))), np.arange(100) % 4)
    assert source.n_blocks > 2
    return Dataset(source)


def whole(dataset: Dataset) -> Array:
    return counts(texts(dataset.n_rows))


def assert_say(found: list[Verdicts], scores: Array, model: Model) -> None:
    """The verdicts are what the scores say."""
    best = np.concatenate([part.best for part in found])
    np.testing.assert_array_equal(best, scores.argmax(axis=1))
    ordered = np.sort(scores, axis=1)
    margins = np.concatenate([part.margins for part in found])
    np.testing.assert_allclose(margins, ordered[:, -1] - ordered[:, -2], atol=1e-12)
    if not model.has_probabilities:
        assert all(part.chances is None for part in found)
        return
    chances = np.concatenate([part.chances for part in found])
    np.testing.assert_array_equal(chances, np.exp(model.log_posterior(scores)).max(axis=1, initial=0))
    likelihoods = np.exp(scores / (2 if isinstance(model, CentersModel) else 1))
    expected = likelihoods.max(axis=1) / likelihoods.sum(axis=1)
    np.testing.assert_allclose(chances, expected, rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_dataset(name: str, dataset: Dataset) -> None:
    model = MODELS[name]
    scores = score(whole(dataset), model, "scores")
    np.testing.assert_allclose(score(dataset, model, "scores"), scores, rtol=1e-12, atol=1e-12)
    lazy = score(da.from_array(whole(dataset), chunks=(30, 6)), model, "scores")
    assert lazy.shape == (100, 3)
    np.testing.assert_allclose(lazy.compute(), scores, rtol=1e-12, atol=1e-12)
    found = list(verdicts(dataset, model))
    assert len(found) == dataset.source.n_blocks
    assert [part.rows.tolist() for part in found] == [list(range(part.seen)) for part in found]
    assert_say(found, scores, model)


def test_whitened_features(dataset: Dataset) -> None:
    rng = np.random.default_rng(5)
    root, shift = rng.normal(size=(6, 2)), rng.random(6)
    changes = {"support": np.array([1, 4]), "names": None, "text": None}
    model = replace(
        center_model("mahalanobis", **SPREAD),
        **changes,
        covariance="full",
        variances=None,
        root=root,
        shift=shift,
        centers=CENTERS[:, :2],
        pooled=np.ones(2),
    )
    expected = (whole(dataset) - shift) @ root
    np.testing.assert_allclose(score(dataset, model, "whiten"), expected, atol=1e-12)
    lazy = score(da.from_array(whole(dataset), chunks=(30, 6)), model, "whiten")
    assert lazy.shape == (100, 2)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)
    distances = ((expected[:, None] - model.centers) ** 2).sum(axis=2)
    scores = ((expected - model.pooled) ** 2).sum(axis=1)[:, None] - distances
    np.testing.assert_allclose(score(dataset, model, "scores"), scores, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_documents_that_are_read_piece_by_piece(name: str, tmp_path: Path) -> None:
    model, given = MODELS[name], texts(80)
    (tmp_path / "some.txt").write_text("\n".join(given))
    (tmp_path / "a.csv").write_text("text\n" + "\n".join(given))
    for file in ("some.txt", "a.csv"):
        found = list(verdicts(ReadDocuments(open_documents(tmp_path / file), Reader(model)), model, SerialEngine()))
        assert sum(part.seen for part in found) == len(given)
        assert_say(found, score(counts(given), model, "scores"), model)


@pytest.mark.parametrize("name", ["l2", "multinomial"])
def test_documents_are_a_source_like_any_other(name: str, tmp_path: Path) -> None:
    """What is scored and selected of files, of a list and of a bag is what counts give."""
    model, given = MODELS[name], texts(50, seed=2)
    (tmp_path / "some.txt").write_text("\n".join(given))
    reader, rows = Reader(model), sparse.csr_array(counts(given))
    read = ReadDocuments(open_documents(tmp_path / "some.txt"), reader)
    assert (read.n_blocks, read.n_features, read.classes) == (1, 6, None)
    lazy = TextSource(reader, bag.from_sequence(given, npartitions=3))
    for source in (read, TextSource(reader, given), lazy):
        scores, chosen = score(source, model, "scores"), select(source, model.support)
        if source is lazy:
            scores, chosen = scores.compute(), sparse.vstack([chosen.partitions[i].compute() for i in range(3)])
        np.testing.assert_array_equal(scores, score(rows, model, "scores"))
        np.testing.assert_array_equal(chosen.todense(), rows[:, model.support].todense())
    (tmp_path / "none.csv").write_text("text\n")
    none = ReadDocuments(open_documents(tmp_path / "none.csv"), reader)
    assert (score(none, model, "scores").shape, select(none, model.support).shape) == ((0, 3), (0, 3))
    read_columns = np.concatenate([block.indices for block in read.blocks(0, 1)])
    np.testing.assert_array_equal(read_columns, next(TextSource(reader, given).blocks(0, 1)).indices)


def test_labels_are_put_together_from_parts() -> None:
    model = MODELS["l2"]
    parts = [
        Evaluation(np.array(labels), model.classes, np.array(confusion), Seen(seen=len(labels)))
        for labels, confusion in ((["a", "d"], [[1, 0, 2], [0, 3, 0]]), (["b", "d"], [[4, 0, 0], [0, 1, 5]]))
    ]
    found = sum(parts, Evaluation.nothing(model))
    assert found.labels.tolist() == ["a", "b", "d"]
    assert found.confusion.tolist() == [[1, 0, 2], [4, 0, 0], [0, 4, 5]]
    assert (found.seen.seen, found.left_out, found.confidence) == (4, 0, None)


def test_documents_that_were_left_out_have_no_verdict() -> None:
    documents = open_documents(["tea", None, "milk cup"], DocumentParameters(on_error="skip"))
    (found,) = verdicts(ReadDocuments(documents, Reader(MODELS["l1"])), MODELS["l1"])
    assert (found.seen, found.left_out, found.rows.tolist(), found.chances) == (3, 1, [0, 2], None)
    assert_say([found], score(counts(["tea", "milk cup"]), MODELS["l1"], "scores"), MODELS["l1"])


@pytest.mark.parametrize("name", MODELS)
def test_evaluation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 700)
    model, given, labels = MODELS[name], texts(90), np.array(["a", "b", "d"])[np.arange(90) % 3]
    X = counts(given)
    best = score(X, model, "scores").argmax(axis=1)
    expected = np.array([[((labels == label) & (best == c)).sum() for c in range(3)] for label in ("a", "b", "d")])
    with pytest.warns(DataWarning, match="30 of 90 documents have labels the model was not fitted to, 'd'"):
        found = evaluate(model, Dataset(MatrixSource(sparse.csr_array(X), labels)))
    np.testing.assert_array_equal(found.confusion, expected)
    assert found.accuracy == (model.classes[best] == labels).mean()
    import pandas as pd

    frame = pd.DataFrame({"text": [*given, None], "folder": [*labels, "a"]})
    documents = open_documents(frame, DocumentParameters(label_column="folder", on_error="skip"))
    with pytest.warns(DataWarning, match="labels the model"), pytest.warns(DataWarning, match="1 of 91 documents were"):
        read = evaluate(model, ReadDocuments(documents, Reader(model)))
    np.testing.assert_array_equal(read.confusion, expected)
    assert read.left_out == 1
