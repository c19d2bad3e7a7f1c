"""Explanations of rows and texts wherever they lie, against decisions, counts, and the texts themselves."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.prediction import explained_rows, explaining
from nfs_dask.prediction.explained_document import ExplainedDocument, MarkedText, overlaid
from nfs_dask.prediction.explaining import explain
from nfs_dask.prediction.explanation import Explanation
from nfs_dask.sources.matrix_source import MatrixSource
from tests.helpers.toys import ToySource

HAM = ["Lunch on Tuesday?", "Notes of the team meeting", "The meeting on Tuesday is moved", "Café au lait, Tuesday"]
SPAM = ["Cheap watches, best price", "The best price for cheap pills", "Win a CHEAP watch", "Win a café, cheap cheap"]
NEW = ["The cheap price of a Tuesday", "", "Nothing", "cheap CHEAP  meeting: the CAFÉ on Tuesday, best  price"]

SETTINGS: dict[str, dict[str, Any]] = {
    "words": {},
    "accents": {"strip_accents": "unicode", "ngrams": (1, 2)},
    "stop words": {"ngrams": (1, 3), "stop_words": ["the", "a", "on"]},
    "characters": {"analyzer": "char", "ngrams": (2, 3)},
    "characters of words": {"analyzer": "char_wb", "ngrams": (2, 4)},
    "hashed": {"hashed": 12},
    "tokens": {"tokenizer": str.split},
    "a pattern": {"token_pattern": r"(?u)[^\W\d_]+", "lowercase": False},
}


def matrix(n_classes: int = 2, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.poisson(rng.gamma(0.6, 1.0, (n_classes, 20))[y]), y


def sums(explanation: Explanation) -> np.ndarray:
    """Base and contributions of each document."""
    indptr, base = explanation.contributions.entries.indptr, explanation.base
    base = base.reshape(len(base), 1 if base.ndim == 1 else base.shape[1])
    parts = explanation.contributions.parts.reshape(-1, base.shape[1])
    out = [
        [math.fsum([base[i, c], *parts[start:stop, c]]) for c in range(base.shape[1])]
        for i, (start, stop) in enumerate(zip(indptr, indptr[1:], strict=False))
    ]
    return np.array(out).reshape(explanation.base.shape)


def sums_of_frame(explanation: Explanation) -> np.ndarray:
    """The same, of the frame."""
    frame = explanation.to_frame()
    out = explanation.base.copy()
    for row in frame.itertuples():
        where = (
            (row.document,)
            if out.ndim == 1
            else (row.document, list(explanation.classes).index(frame["class"][row.Index]))
        )
        out[where] += row.contribution
    return out


@pytest.mark.parametrize("n_classes", [2, 3])
def test_containers_are_explained_alike(n_classes: int) -> None:
    X, y = matrix(n_classes)
    model = nfs.SparseMultinomialNB(6).fit(X, y)
    expected = model.explain(X)
    np.testing.assert_allclose(sums(expected), model.decision_function(X), rtol=0, atol=1e-13)
    np.testing.assert_allclose(sums_of_frame(expected), model.decision_function(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(expected.predicted, model.predict(X))
    np.testing.assert_array_equal(expected.probabilities, model.predict_proba(X))
    frame = expected.to_frame()
    assert list(frame) == ["document", "feature", "value", *(["class"] if n_classes > 2 else []), "contribution"]
    assert len(frame) == np.count_nonzero(X[:, model.get_support()]) * (n_classes if n_classes > 2 else 1)
    for given in (sparse.csr_matrix(X), sparse.csc_array(X), X.tolist(), da.from_array(X, chunks=(17, 20))):
        pd.testing.assert_frame_equal(model.explain(given).to_frame(), frame)
    table = pd.DataFrame(X, columns=[f"gene {i}" for i in range(20)])
    named = nfs.SparseMultinomialNB(6).fit(table, y).explain(table).to_frame()
    assert set(named["feature"]) <= set(table)
    by_name = [table.loc[d, f] for d, f in zip(named["document"], named["feature"], strict=True)]
    assert by_name == named["value"].tolist()


@pytest.mark.parametrize("documents", [[3], [7, 0, 59, 7], range(20, 30), np.array([1, 2]), []])
def test_chosen_documents_come_in_their_order(documents: Any) -> None:
    X, y = matrix(3)
    model = nfs.SparseMultinomialNB(6).fit(X, y)
    rows = np.array(list(documents), int)
    found = model.explain(X, documents)
    np.testing.assert_array_equal(found.documents, rows)
    np.testing.assert_array_equal(found.decision, model.decision_function(X)[rows].reshape(-1, 3))
    np.testing.assert_allclose(sums(found).reshape(-1, 3), found.decision, atol=1e-13)
    dask = model.explain(da.from_array(X, chunks=(17, 20)), documents)
    np.testing.assert_array_equal(dask.contributions.parts, found.contributions.parts)


class Counting(ToySource):
    """Counts the blocks that are read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.read: list[int] = []

    def blocks(self, start: int, stop: int) -> Any:
        self.read += range(start, stop)
        return super().blocks(start, stop)


def test_few_blocks_are_read_for_few_documents() -> None:
    X, y = matrix(2, 4000)
    model = nfs.SparseMultinomialNB(6).fit(X, y).model_
    source = Counting(sparse.csr_matrix(X), n_blocks=200)
    found = explain(source, model, [3999, 5, 2000])
    np.testing.assert_array_equal(
        found.decision, model.decision_function(next(MatrixSource(X).blocks(0, 1)))[[3999, 5, 2000]]
    )
    assert len(source.read) <= 8
    source.read.clear()
    assert explain(source, model, first=3).documents.tolist() == [0, 1, 2]
    assert source.read == [0]


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([99], "document 99 is not there: there are 60, numbered from 0"),
        ([-1], "numbers of documents from 0 on"),
        ([0.5], "numbers of documents from 0 on"),
        ("3", "numbers of documents from 0 on"),
        (3, "numbers of documents from 0 on"),
        ([True, False], "numbers of documents from 0 on"),
    ],
)
def test_documents_that_are_not_there_are_refused(documents: Any, said: str) -> None:
    X, y = matrix()
    with pytest.raises(InputError, match=said):
        nfs.SparseMultinomialNB(6).fit(X, y).explain(X, documents)


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = matrix()
    model = nfs.SparseMultinomialNB(6).fit(X, y)
    monkeypatch.setattr(explained_rows, "MOST_DOCUMENTS", 59)
    with pytest.raises(InputError, match=r"more than 59 documents .* documents=range\(100\)"):
        model.explain(X)
    assert len(model.explain(X, range(50))) == 50
    monkeypatch.setattr(explaining, "MOST_NUMBERS", 20)
    with pytest.raises(InputError, match="at most; choose fewer"):
        model.explain(X, range(50))


def fitted(store: Any, place: Path, tokenizer: Any) -> Any:
    """A model, which has to be loaded to be given a tokenizer."""
    model = nfs.SparseMultinomialNB(20).fit(store)
    if tokenizer is None:
        return model
    model.save(place)
    return nfs.load_model(place, tokenizer=tokenizer)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model of each way to read texts."""
    place, found = tmp_path_factory.mktemp("explained"), {}
    for number, (name, settings) in enumerate(SETTINGS.items()):
        store = nfs.ingest(HAM + SPAM, place / f"{number}.zarr", labels=["ham"] * 4 + ["spam"] * 4, **settings)
        found[name] = fitted(store, place / f"{number}.model", settings.get("tokenizer"))
    store = nfs.ingest(HAM + SPAM, place / "tfidf.zarr", labels=["ham"] * 4 + ["spam"] * 4, tfidf=True)
    found["tf-idf"] = nfs.SparseMultinomialNB(12).fit(store)
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_marks_are_as_many_as_compiled_code_counts(models: dict[str, Any], name: str) -> None:
    """The value of a feature of counts is how often it was met, and each of these is marked."""
    explanation = models[name].explain(HAM + SPAM + NEW)
    total = 0
    for document in explanation.first():
        (text,) = document.texts
        assert text.text == (HAM + SPAM + NEW)[document.document] and text.unmarked is None
        times = Counter(mark.part for mark in text.marks)
        assert {i: part.value for i, part in enumerate(document.parts)} == times
        assert "".join(stretch for stretch, _ in overlaid(text)) == text.text
        total += len(text.marks)
    assert total > 20
    np.testing.assert_allclose(sums(explanation), models[name].decision_function(HAM + SPAM + NEW), atol=1e-12)


def test_tf_idf_is_marked_too(models: dict[str, Any]) -> None:
    document = models["tf-idf"].explain(NEW).of(3)
    marked = {document.texts[0].text[mark.start : mark.stop].lower() for mark in document.texts[0].marks}
    assert marked == {part.feature for part in document.parts} and "cheap" in marked
    assert all(0 < part.value < 1 for part in document.parts)


def test_words_are_marked_as_they_were_written(models: dict[str, Any]) -> None:
    document = models["accents"].explain(pd.Series(NEW, index=list("abcd"))).of(3)
    stretches = {document.texts[0].text[mark.start : mark.stop] for mark in document.texts[0].marks}
    assert {"cheap", "CHEAP", "meeting", "Tuesday"} <= stretches
    assert "[CHEAP +" in str(models["words"].explain(NEW, [3]))
    words = [part.feature for part in models["words"].explain(NEW).top(3, 2)]
    assert words[0] == "cheap" and len(words) == 2


def test_regions_have_their_own_marks(tmp_path: Path) -> None:
    table = pd.DataFrame({"subject": HAM + SPAM, "body": SPAM + HAM, "label": ["ham"] * 4 + ["spam"] * 4})
    store = nfs.ingest(table, tmp_path / "r.zarr", regions=["subject", "body"], label_column="label")
    for model in (nfs.SparseMultinomialNB(20).fit(store), nfs.HybridNB(regions=2).fit(store)):
        rows = pd.DataFrame({"subject": NEW, "body": NEW[::-1]})
        explanation = model.explain(rows, [3, 0])
        assert [text.text for text in explanation.of(0).texts] == [NEW[0], NEW[3]]
        for document in explanation.first():
            for text in document.texts:
                for mark in text.marks:
                    stretch = text.text[mark.start : mark.stop].lower()
                    assert document.parts[mark.part].feature == f"{text.region}:{stretch}"
            marks = Counter(mark.part for text in document.texts for mark in text.marks)
            assert marks == {i: part.value for i, part in enumerate(document.parts)}
        np.testing.assert_allclose(sums(explanation), model.decision_function(rows)[[3, 0]], atol=1e-12)
        assert "subject: " in str(explanation)


def test_a_stemmer_has_its_features_listed(tmp_path: Path) -> None:
    def stems(text: str) -> list[str]:
        return [f"{word[:3]}-" for word in text.split()]

    store = nfs.ingest(HAM + SPAM, tmp_path / "s.zarr", labels=[0] * 4 + [1] * 4, tokenizer=stems)
    explanation = fitted(store, tmp_path / "m", stems).explain(NEW)
    document = explanation.of(0)
    assert document.texts[0].marks == () and "tokenizer" in (document.texts[0].unmarked or "")
    assert "che-" in {part.feature for part in document.parts}
    assert "tokens of the tokenizer are not in the text" in str(explanation)
    assert "tokens of the tokenizer are not in the text" in explanation.to_html()


def test_stores_models_from_files_and_pickles_say_the_same(models: dict[str, Any], tmp_path: Path) -> None:
    model = models["words"]
    model.save(tmp_path / "m")
    expected = model.explain(HAM + SPAM)
    for found in (nfs.load_model(tmp_path / "m").explain(HAM + SPAM), pickle.loads(pickle.dumps(expected))):
        assert str(found) == str(expected) and found.to_html() == expected.to_html()
    store = nfs.ingest(HAM + SPAM, tmp_path / "again.zarr", labels=["ham"] * 4 + ["spam"] * 4)
    rows = model.explain(store, [0, 7])
    pd.testing.assert_frame_equal(rows.to_frame(), model.explain(HAM + SPAM, [0, 7]).to_frame())
    assert rows.of(7).texts == ()


def test_texts_that_nobody_can_read_are_refused(models: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"put it into a list, \[text\]"):
        models["words"].explain("one text")
    with pytest.raises(InputError, match="X is a Dask collection"):
        models["words"].explain(db.from_sequence(NEW))
    with pytest.raises(InputError, match="document 5 is not among the 4"):
        models["words"].explain(NEW).of(5)


def test_more_classes_are_explained_against_the_next_best() -> None:
    X, y = matrix(3)
    model = nfs.SparseMultinomialNB(6).fit(X, np.array(["a", "b", "c"])[y])
    explanation, scores = model.explain(X), model.decision_function(X)
    for document in explanation.first():
        own = scores[document.document]
        best, following = np.argsort(-own, kind="stable")[:2]
        assert document.sides == ("abc"[best], "abc"[following]) and document.predicted == "abc"[best]
        assert document.total == pytest.approx(own[best] - own[following], abs=1e-12)
        sizes = [abs(part.contribution) for part in document.parts]
        assert sizes == sorted(sizes, reverse=True)


def test_ruled_out_classes_are_shown(models: dict[str, Any]) -> None:
    X = np.array([[3, 0, 1, 2], [0, 3, 1, 1], [2, 2, 0, 0]] * 5)
    model = nfs.SparseMultinomialNB(3, alpha=0).fit(X, ["a", "b", "c"] * 5)
    assert "inf" in str(model.explain(X)) and "inf" in model.explain(X).to_html()


def test_no_documents_are_an_explanation(models: dict[str, Any]) -> None:
    none = models["words"].explain(NEW, [])
    assert len(none) == 0 and str(none) == "no documents" and not len(none.to_frame())
    assert none.to_json()["documents"] == []


def test_stretches_and_sides_of_a_document() -> None:
    document = ExplainedDocument(0, "a", None, "", ("a", "b"), 0.5, (), (MarkedText("", ""),))
    assert (document.total, document.margin, document.side_of(0.0)) == (0.5, 0.5, "")
    assert [document.side_of(c) for c in (1.0, -1.0)] == ["a", "b"]
