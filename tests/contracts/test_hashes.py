"""Equal fitted estimators have equal hashes of joblib and tokens of Dask, whenever and wherever they were fitted."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from dask.base import tokenize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs

ESTIMATORS = [
    nfs.SparseMultinomialNB(3),
    nfs.SparseBernoulliNB(3, binarize=0.0),
    nfs.SparseCentroid(3),
    nfs.SparseCentroid(3, metric="manhattan"),
    nfs.SparseCentroid(3, metric="mahalanobis", covariance="full"),
    nfs.HybridNB(k=3),
    nfs.ErrorRateSelector(3, search="forward"),
]
TEXTS, LABELS = ["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"]


def rows(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.poisson(2, (60, n)), columns=[f"word {i}" for i in range(n)]), np.arange(60) % 2


def hashes(one):
    return joblib.hash(one), tokenize(one)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_equal_fits_have_equal_hashes(estimator, tmp_path):
    n = 40 if getattr(estimator, "covariance", "") == "full" else 1100  # arrays that are shortened when printed
    X, y = rows(n)
    model, again = (clone(estimator).fit(X, y) for _ in range(2))
    expected = hashes(model)
    again.predict(X), again.transform(X), again.get_feature_names_out(), getattr(again, "scores_", None)
    assert hashes(again) == expected
    assert hashes(pickle.loads(pickle.dumps(model))) == expected
    assert hashes(copy.deepcopy(model)) == expected
    model.save(tmp_path / "one")
    again.save(tmp_path / "other")
    loaded = [hashes(nfs.load_model(tmp_path / name)) for name in ("one", "other", "other")]
    assert loaded[0] == loaded[1] == loaded[2]
    changed = np.array(X)
    changed[0, n // 2] += 1
    other = clone(estimator).fit(pd.DataFrame(changed, columns=X.columns), y)
    if hasattr(other, "partial_fit"):
        assert not set(hashes(other)) & set(expected)
    other = clone(estimator).set_params(k=2).fit(X, y)
    assert not set(hashes(other)) & set(expected)


def test_models_of_stores_are_equal_whether_or_not_counts_were_kept(tmp_path):
    store = nfs.ingest(TEXTS, tmp_path / "store.zarr", labels=LABELS)
    first, second = (nfs.SparseMultinomialNB(2).fit(store) for _ in range(2))
    assert second.provenance_["reused"] and not first.provenance_["reused"]
    assert hashes(first) == hashes(second)
    first.save(tmp_path / "model")
    assert nfs.load_model(tmp_path / "model").provenance_ == first.provenance_


def test_fitted_vectorizers_and_pipelines_too():
    vectorizers = [nfs.TextVectorizer().fit(TEXTS) for _ in range(2)]
    vectorizers[1].transform(TEXTS)
    assert hashes(vectorizers[0]) == hashes(vectorizers[1]) == hashes(pickle.loads(pickle.dumps(vectorizers[0])))
    pipelines = [make_pipeline(nfs.TextVectorizer(), nfs.SparseMultinomialNB(2)).fit(TEXTS, LABELS) for _ in range(2)]
    assert joblib.hash(pipelines[0]) == joblib.hash(pipelines[1])


def test_hashes_are_those_of_other_processes(tmp_path):
    X, y = rows()
    models = [clone(estimator).fit(X, y) for estimator in ESTIMATORS]
    models[0].save(tmp_path / "model")
    with open(tmp_path / "models", "wb") as file:
        pickle.dump(models, file)
    code = """
import json, pickle, sys
from tests.contracts.test_hashes import *
X, y = rows()
fitted = [clone(estimator).fit(X, y) for estimator in ESTIMATORS]
with open("models", "rb") as file:
    carried = pickle.load(file)
print(json.dumps([[hashes(one) for one in (*each, nfs.load_model("model"))] for each in (fitted, carried)]))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.getcwd()}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    expected = [list(hashes(one)) for one in (*models, nfs.load_model(tmp_path / "model"))]
    for found in json.loads(run.stdout.splitlines()[-1]):
        assert found == expected
