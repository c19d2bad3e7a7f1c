"""What an evaluation says of confidence is what the posteriors of the estimator say, however the documents are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix

import nfs_dask as nfs
from nfs_dask.prediction.coverage import Reliability, accuracy_coverage
from nfs_dask.prediction.evaluation import evaluate, wilson
from nfs_dask.prediction.model_rows import TOGETHER
from nfs_dask.sources.matrix_source import MatrixSource
from tests.helpers.wrapped import Wrapped


@pytest.fixture(scope="module")
def documents() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=2000)
    rates = rng.gamma(0.6, size=(3, 30))
    return rng.poisson(rates[codes]), np.array(["ale", "beer", "cider"])[codes]


class _SmallBlocks(Wrapped):
    """A source whose blocks are rows of another one."""

    def __init__(self, inner: MatrixSource, rows: int) -> None:
        super().__init__(inner, n_blocks=-(-inner.n_rows // rows))
        self.rows = rows

    def blocks(self, start: int, stop: int):
        from nfs_dask.testing import rows_of

        (whole,) = self.inner.blocks(0, 1)
        for number in range(start, stop):
            yield rows_of(whole, np.arange(number * self.rows, min((number + 1) * self.rows, whole.n_rows)))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rows", [2000, 17])
def test_confidence_is_that_of_the_posteriors(documents, classes: int, rows: int) -> None:
    X, y = documents
    kept = np.isin(y, ["ale", "beer", "cider"][:classes])
    X, y = X[kept], y[kept]
    model = nfs.SparseMultinomialNB(10).fit(X, y)
    source = _SmallBlocks(MatrixSource(X, y), rows)
    assert rows > 1000 or source.n_blocks > TOGETHER
    found = evaluate(model.model_, nfs.Dataset(source), nfs.SerialEngine())
    predicted = model.predict(X)
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y, predicted))
    assert found.accuracy == accuracy_score(y, predicted)
    assert found.interval == wilson(int((y == predicted).sum()), len(y))
    values = found.to_json()
    scores = model.decision_function(X)
    curve = accuracy_coverage(scores, y, classes=model.classes_, at_zero=0)
    np.testing.assert_allclose(values["coverage"]["accuracy"], curve.to_json()["accuracy"], atol=2e-3)
    assert values["coverage"]["accuracy"][-1] == pytest.approx(found.accuracy, rel=1e-12)
    reliability = Reliability.of(model.predict_proba(X), y, classes=model.classes_)
    assert values["reliability"] == reliability.table()
    assert values["expected_calibration_error"] == reliability.expected_error


def test_labels_that_the_model_does_not_know_are_mistakes(documents) -> None:
    X, y = documents
    known = y != "cider"
    model = nfs.SparseMultinomialNB(10).fit(X[known], y[known])
    with pytest.warns(nfs.DataWarning, match="the model was not fitted to, 'cider'"):
        found = evaluate(model.model_, nfs.Dataset(MatrixSource(X, y)), nfs.SerialEngine())
    right = int((model.predict(X) == y).sum())
    assert found.accuracy == right / len(y)
    assert found.to_json()["coverage"]["accuracy"][-1] == pytest.approx(right / len(y), rel=1e-12)


def test_distances_are_no_probabilities(documents, tmp_path: Path) -> None:
    X, y = documents
    for metric in ("euclidean", "manhattan"):
        model = nfs.SparseCentroid(10, metric=metric).fit(X, y)
        values = evaluate(model.model_, nfs.Dataset(MatrixSource(X, y)), nfs.SerialEngine()).to_json()
        assert values["accuracy"] == model.score(X, y)
        assert "coverage" not in values


@pytest.mark.filterwarnings("ignore:all labels are:nfs_dask.errors.DataWarning")
def test_a_model_of_one_class_is_judged_without_confidence() -> None:
    X = [[2, 0, 1], [1, 1, 0]]
    found = nfs.evaluate(nfs.SparseMultinomialNB(k=2).fit(X, ["tea", "tea"]), X, ["tea", "tea"])
    assert found.accuracy == 1 and found.confidence is None
