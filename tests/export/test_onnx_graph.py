"""Graphs of ONNX say in ONNX Runtime what the models say."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from tests.helpers.sql_cases import hard_counts, named, sql_cases

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'nfs-dask[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CASES = sql_cases()


def run(graph, rows):
    """Outputs by their names."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"features": np.asarray(rows, kind)}), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_classes_and_probabilities(case, dtype):
    graph, X = case.model.to_onnx(dtype), named(case.X)
    found = run(graph, case.X[:, case.model.get_support()])
    labels = case.model.predict(X)
    assert found["label"].tolist() == labels.tolist()
    assert ("probabilities" in found) == case.model.model_.has_probabilities
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], case.model.predict_proba(X), atol=1e-12)
    scores, expected = found["scores"], case.model.decision_function(X)
    if len(case.model.classes_) == 2:
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=1e-9)
    else:
        np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_no_digits_are_lost_to_what_values_have_in_common():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = 1e8 + rng.integers(0, 4, (200, 6)) + 2.0 * np.eye(2, 6)[y]
    model = nfs.SparseCentroid(k=3, metric="mahalanobis").fit(X, y)
    found = run(model.to_onnx("float64"), X[:, model.get_support()])
    assert found["label"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-7)


def test_rows_that_all_classes_rule_out_are_left_to_the_priors():
    X = np.array([[1, 0, 1], [0, 1, 1], [0, 1, 1]])
    model = nfs.SparseMultinomialNB(k="all", alpha=0).fit(X, ["a", "b", "b"])
    rows = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]])
    found = run(model.to_onnx(), rows)
    assert found["label"].tolist() == model.predict(rows).tolist() == ["b", "a", "b", "b"]
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-15)


def test_classes_without_documents_are_never_predicted():
    X, y = hard_counts(100, ["a", "b"], 7)
    for model in (nfs.SparseCentroid(k=4), nfs.SparseMultinomialNB(k=4)):
        model.partial_fit(X, y, classes=["a", "b", "c"])
        found = run(model.to_onnx(), X[:, model.get_support()])
        assert found["label"].tolist() == model.predict(X).tolist()
        np.testing.assert_array_equal(found["scores"][:, 2], -np.inf)


def test_files_keep_the_names_of_their_columns_and_load_again(tmp_path):
    import onnx

    case = CASES[0]
    case.model.save(tmp_path / "m")
    onnx.save(nfs.load_model(tmp_path / "m").to_onnx(), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    kept = session.get_modelmeta().custom_metadata_map
    assert json.loads(kept["feature_names"]) == case.model.get_feature_names_out().tolist()
    empty = session.run(["label"], {"features": np.zeros((0, 9), np.float32)})[0]
    assert empty.shape == (0,)


def test_what_cannot_be_said_is_refused(monkeypatch):
    model = CASES[0].model
    with pytest.raises(InputError, match="'float32' or 'float64'"):
        model.to_onnx("float16")
    X, y = hard_counts(60, ["a", "b"], 3)
    with pytest.raises(InputError, match='covariance="full"'):
        nfs.SparseCentroid(k=3, metric="mahalanobis", covariance="full", variance_floor=0.1).fit(X, y).to_onnx()
    with pytest.raises(InputError, match="all 24 columns"):
        nfs.ErrorRateSelector(k=3).fit(X, y).to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"nfs-dask\[onnx\]"):
        model.to_onnx()
