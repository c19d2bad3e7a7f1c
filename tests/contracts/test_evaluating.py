"""`evaluate` and its neighbours in the command: the scores of scikit-learn, standard input, exports to files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

import nfs_dask as nfs

NFS_DASK = Path(sys.executable).with_name("nfs-dask")


def data(n_classes: int, n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(n_classes, size=n)
    return rng.poisson(rng.gamma(1.0, 1.0, (n_classes, 20))[codes] + 0.3), np.array(["ham", "spam", "eggs"])[codes]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_scikit_learns(n_classes: int) -> None:
    X, y = data(n_classes)
    model = nfs.SparseMultinomialNB(k=5).fit(X[:100], y[:100])
    found = nfs.evaluate(model, X[100:], y[100:]).to_json()
    proba, said, true = model.predict_proba(X[100:]), model.predict(X[100:]), y[100:]
    assert found["f1_macro"] == pytest.approx(metrics.f1_score(true, said, average="macro"), abs=1e-12)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(true, proba, labels=model.classes_), abs=1e-8)
    assert found["majority_accuracy"] == max(np.mean(true == label) for label in model.classes_)
    squares = ((proba - (true[:, None] == model.classes_)) ** 2).sum(axis=1).mean()
    assert found["brier_score"] == pytest.approx(squares / (2 if n_classes == 2 else 1), abs=1e-8)
    if n_classes == 2:
        area = metrics.roc_auc_score(true == model.classes_[1], model.decision_function(X[100:]))
        assert found["roc_auc"] == pytest.approx(area, abs=1e-4)
    else:
        assert found["roc_auc"] is None


def test_scores_that_are_undefined_are_null() -> None:
    X, y = data(2)
    model = nfs.SparseCentroid(k=5).fit(X, y)
    found = nfs.evaluate(model, X, y).to_json()
    assert found["log_loss"] is found["brier_score"] is None
    area = metrics.roc_auc_score(y == model.classes_[1], model.decision_function(X))
    assert found["roc_auc"] == pytest.approx(area, abs=1e-4)
    assert nfs.evaluate(model, X[y == "ham"], y[y == "ham"]).to_json()["roc_auc"] is None
    known = nfs.SparseMultinomialNB(k=5).fit(X, y)
    with pytest.warns(nfs.DataWarning, match="labels the model was not fitted to"):
        assert nfs.evaluate(known, X, np.where(np.arange(300) < 5, "eggs", y)).to_json()["log_loss"] is None


def test_scores_do_not_depend_on_blocks(tmp_path: Path) -> None:
    X, y = data(2)
    model = nfs.SparseMultinomialNB(k=5).fit(X, y)
    whole = nfs.evaluate(model, X, y).to_json()
    store = nfs.ingest(X, tmp_path / "s.zarr", labels=y, block_bytes=2000)
    parts = nfs.evaluate(model, store).to_json()
    assert all(whole[name] == parts[name] for name in ("f1_macro", "roc_auc", "log_loss", "brier_score"))


@pytest.fixture(scope="module")
def spam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of texts."""
    folder = tmp_path_factory.mktemp("spam")
    rows = [
        "label,text",
        *["spam,win cheap money", "ham,lunch at noon", "spam,cheap watch", "ham,see you at lunch"] * 5,
    ]
    (folder / "mail.csv").write_text("\n".join(rows))
    run(folder, "ingest", "mail.csv", "mail.zarr", "--label-column", "label")
    run(folder, "fit", "mail.zarr", "mail.model", "-k", "4")
    return folder


def run(folder: Path, *words: str, given: str | None = None, code: int = 0) -> str:
    done = subprocess.run([NFS_DASK, *words], cwd=folder, input=given, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_hyphen_is_standard_input(spam: Path) -> None:
    explained = run(spam, "explain", "mail.model", "-", given="a cheap lunch")
    assert "cheap" in explained and "lunch" in explained
    predicted = run(spam, "predict", "mail.model", "-", given="cheap money\nlunch at noon\n")
    assert [line.split(",")[1] for line in predicted.splitlines()[1:]] == ["spam", "ham"]


def test_evaluate_shows_its_scores(spam: Path) -> None:
    shown = run(spam, "evaluate", "mail.model", "mail.csv")
    for name in ("largest class 0.5000", "macro F1", "ROC AUC", "log loss", "Brier score"):
        assert name in shown


def test_plan_and_fit_have_the_same_default(spam: Path) -> None:
    assert json.loads(run(spam, "plan", "mail.zarr", "-k", "4", "--json"))["method"] == "multinomial"


def test_models_are_exported_to_files(spam: Path) -> None:
    run(spam, "sql", "mail.model", "--out", "mail.sql")
    assert (spam / "mail.sql").read_text().rstrip().endswith(";")
    run(spam, "onnx", "mail.model", "--out", "mail.onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(spam / "mail.onnx")
    assert session.get_inputs()
    run(spam, "sklearn", "mail.model", "--out", "mail.joblib")
    import joblib

    pipeline = joblib.load(spam / "mail.joblib")
    assert pipeline.predict(["cheap money", "lunch at noon"]).tolist() == ["spam", "ham"]
    assert "give one that ends in" in run(spam, "sklearn", "mail.model", "--out", "mail.zip", code=2)
    assert "exists; name another file" in run(spam, "onnx", "mail.model", "--out", "mail.onnx", code=3)
