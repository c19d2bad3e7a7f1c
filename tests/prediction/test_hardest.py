"""The hardest documents against all of them sorted, however they are cut into blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.estimators.evaluating import evaluate_closely, explain_hardest
from nfs_dask.prediction.hardest import MOST_LETTERS

READ = DocumentParameters()


def documents(n_classes: int, n: int = 500) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, n)
    return sp.csr_array(rng.poisson(rng.gamma(0.3, size=(n_classes, 30))[y] * 0.5)), y


def by_hand(model: Any, X: Any, y: Any, keep: int) -> tuple[list[int], list[int]]:
    """Numbers of the most wrong and of the least sure, from all scores."""
    scores = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else model.decision_function(X)
    ordered = np.sort(scores, axis=1)
    off = np.round(ordered[:, -1] - scores[np.arange(len(y)), y], 9)
    lead = np.round(ordered[:, -1] - ordered[:, -2], 9)
    wrong = [i for i in np.argsort(-off, kind="stable").tolist() if scores[i].argmax() != y[i]]
    return wrong[:keep], np.argsort(lead, kind="stable")[:keep].tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_are_those_of_all_documents_sorted(n_classes: int, tmp_path: Path) -> None:
    X, y = documents(n_classes)
    model = nfs.SparseMultinomialNB(k=12).fit(X, y)
    store = nfs.ingest(X, tmp_path / "x.zarr", labels=y, block_bytes=2000)
    for data, labels in ((X, y), (store, None)):
        hardest = evaluate_closely(model, data, labels, READ, None, keep=8).hardest
        assert hardest is not None and hardest.seen == len(y)
        wrong, unsure = by_hand(model, X, y, 8)
        assert [one.number for one in hardest.wrong] == wrong
        assert [one.number for one in hardest.unsure] == unsure
        assert [one.label for one in hardest.wrong] == y[wrong].tolist()


def test_their_rows_explain_the_decision() -> None:
    X, y = documents(2)
    model = nfs.SparseMultinomialNB(k=12).fit(X, y)
    found = evaluate_closely(model, X, y, READ, None, keep=5)
    explanation = explain_hardest(model, found)
    assert explanation is not None and found.hardest is not None
    assert explanation.documents.tolist() == found.hardest.numbers.tolist()
    np.testing.assert_allclose(explanation.decision, model.decision_function(X[explanation.documents]))
    number = found.hardest.wrong[0].number
    assert found.hardest.wrong[0].off == pytest.approx(abs(model.decision_function(X[[number]])[0]))


def test_of_texts_come_with_their_texts(tmp_path: Path) -> None:
    good, bad = ["warm and funny", "a funny film"] * 10, ["dull and long", "a long waste"] * 10
    store = nfs.ingest(good + bad, tmp_path / "x.zarr", labels=["good"] * 20 + ["bad"] * 20)
    model = nfs.SparseMultinomialNB(k=4).fit(store)
    texts = ["so funny", "so dull, so long", "funny funny funny " + "x" * MOST_LETTERS, "nothing known"]
    labels = ["good", "bad", "bad", "good"]
    table = tmp_path / "new.jsonl"
    table.write_text(
        "".join(f'{{"text": "{text}", "label": "{one}"}}\n' for text, one in zip(texts, labels, strict=True))
    )
    for data, y, reading in ((texts, labels, READ), (str(table), None, DocumentParameters("text", None, "label"))):
        found = evaluate_closely(model, data, y, reading, None, keep=2)
        assert found.hardest is not None and found.hardest.wrong[0].number == 2
        explanation = explain_hardest(model, found)
        assert explanation is not None and explanation.texts is not None
        shown = explanation.of(2).texts[0]
        assert len(shown.text) == MOST_LETTERS and shown.marks


def test_unknown_labels_and_rows_without_one_are_not_compared(tmp_path: Path) -> None:
    X, y = documents(2, 60)
    model = nfs.SparseMultinomialNB(k=12).fit(X, y)
    with pytest.warns(nfs.DataWarning, match="not fitted to"):
        found = evaluate_closely(model, X, np.where(y == 0, 0, np.arange(60) % 2 + 1), READ, None, keep=60)
    assert found.hardest is not None and {one.label for one in found.hardest.unsure} == {0, 1}


def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    X, y = documents(2, 60)
    assert nfs.evaluate(nfs.SparseMultinomialNB(k=12).fit(X, y), X, y).hardest is None


def test_are_the_same_on_workers(cluster: Any, tmp_path: Path) -> None:
    X, y = documents(3)
    store = nfs.ingest(X, tmp_path / "x.zarr", labels=y, block_bytes=2000)
    model = nfs.SparseMultinomialNB(k=12).fit(store)
    here, there = (
        evaluate_closely(model, store, None, READ, engine, keep=6)
        for engine in (nfs.SerialEngine(), nfs.DaskEngine(cluster))
    )
    assert here.hardest is not None and there.hardest is not None and here.hardest.seen == 500
    for mine, theirs in ((here.hardest.wrong, there.hardest.wrong), (here.hardest.unsure, there.hardest.unsure)):
        assert [(one.number, one.label, one.off) for one in mine] == [(o.number, o.label, o.off) for o in theirs]
    explained = [explain_hardest(model, found) for found in (here, there)]
    assert explained[0] is not None and explained[1] is not None and str(explained[0]) == str(explained[1])


def test_what_is_kept_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    import pickle

    X, y = documents(2, 4000)
    model = nfs.SparseMultinomialNB(k=12).fit(X, y)
    few, many = (evaluate_closely(model, X[:n], y[:n], READ, None, keep=5).hardest for n in (200, 4000))
    assert many is not None and len(many.wrong) == len(many.unsure) == 5
    assert len(pickle.dumps(many)) < 2 * len(pickle.dumps(few)) < 100_000
