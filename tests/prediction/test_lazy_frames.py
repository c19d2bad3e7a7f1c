"""Predictions of Dask data frames and Series can be put beside them: they have their index and their divisions."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from nfs_dask.prediction.scoring import score

rng = np.random.default_rng(3)
X = pd.DataFrame(rng.poisson(1.0, (40, 5)), columns=list("abcde"), index=np.arange(100, 180, 2))
LABELS = {2: np.array(["ham", "spam"])[rng.integers(0, 2, 40)], 3: rng.integers(0, 3, 40)}
TEXTS = pd.Series(["green tea", "black tea", "black coffee", ""] * 10, index=X.index)
METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function", "predict_joint_log_proba"]
KINDS = ["numbers", "texts"]


@pytest.fixture(scope="module", params=[2, 3])
def models(request, tmp_path_factory):
    y = LABELS[request.param]
    store = nfs.ingest(TEXTS, tmp_path_factory.mktemp("s") / "s", labels=y)
    model = nfs.SparseMultinomialNB(k=3)
    return {"numbers": model.fit(X, y), "texts": nfs.SparseMultinomialNB(k=3).fit(store)}


def check(found, expected, lazy, classes):
    assert type(found) is (dd.Series if expected.ndim == 1 else dd.DataFrame)
    assert found.divisions == lazy.divisions
    here = found.compute(scheduler="sync")
    pd.testing.assert_index_equal(here.index, X.index)
    np.testing.assert_array_equal(here.to_numpy(), expected)
    if expected.ndim == 1:
        assert here.dtype == found.dtype
    else:
        assert here.columns.tolist() == found.columns.tolist() == classes.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("known", [True, False])
def test_predictions_have_the_index(models, kind, method, known):
    given, model = {"numbers": X, "texts": TEXTS}[kind], models[kind]
    lazy = dd.from_pandas(given, npartitions=3)
    lazy = lazy if known else lazy.clear_divisions()
    check(getattr(model, method)(lazy), getattr(model, method)(given), lazy, model.classes_)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_go_into_the_frame(models, kind):
    given = {"numbers": X, "texts": TEXTS.to_frame("text")}[kind]
    lazy = dd.from_pandas(given, npartitions=4)
    rows = lazy if kind == "numbers" else lazy["text"]
    joined = lazy.assign(guess=models[kind].predict(rows)).compute(scheduler="sync")
    assert joined["guess"].tolist() == models[kind].predict(given if kind == "numbers" else TEXTS).tolist()
    assert models[kind].score(rows, joined["guess"]) == 1.0


def test_each_partition_is_made_once(models):
    made = []

    def make(part):
        made.append(len(part))
        return part

    lazy = dd.from_pandas(X, npartitions=3).map_partitions(make, meta=X.iloc[:0])
    made.clear()
    models["numbers"].predict_proba(lazy).compute(scheduler="sync")
    assert sum(made) == len(X)


def test_persisted_frames_of_a_cluster(cluster, models):
    lazy = dd.from_pandas(X, npartitions=3).persist()
    np.testing.assert_array_equal(models["numbers"].predict(lazy).compute(), models["numbers"].predict(X))


def test_other_collections_stay_arrays(models):
    lazy = da.from_array(X.to_numpy(), chunks=(20, 5))
    model = nfs.SparseMultinomialNB(k=3).fit(X.to_numpy(), LABELS[2])
    assert isinstance(model.predict(lazy), da.Array)
    assert isinstance(models["numbers"].predict(X), np.ndarray)


def test_whitened_features_stay_arrays():
    model = nfs.SparseCentroid(k=2, metric="mahalanobis", covariance="full").fit(X, LABELS[2])
    lazy = dd.from_pandas(X, npartitions=3)
    found = score(lazy, model.model_, "whiten")
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(scheduler="sync"), score(X, model.model_, "whiten"))


NOTHING = {
    "list": [],
    "Series": pd.Series([], dtype=str),
    "Series of objects": pd.Series([], dtype=object),
    "Series of numbers": pd.Series([], dtype=float),
    "strings": np.array([], str),
    "numbers": np.array([]),
    "polars": pytest.importorskip("polars").Series([]),
    "polars strings": pytest.importorskip("polars").Series([], dtype=pytest.importorskip("polars").String),
    "pyarrow": pytest.importorskip("pyarrow").array([]),
}


@pytest.mark.parametrize("nothing", NOTHING)
def test_nothing_is_predicted_of_nothing(models, nothing):
    model = models["texts"]
    assert model.predict(NOTHING[nothing]).shape == (0,)
    assert model.predict_proba(NOTHING[nothing]).shape == (0, len(model.classes_))
    assert model.transform(NOTHING[nothing]).shape == (0, 3)


def test_nothing_in_regions(tmp_path):
    texts = pd.DataFrame({"subject": TEXTS, "body": TEXTS})
    model = nfs.SparseMultinomialNB(k=2).fit(
        nfs.ingest(texts, tmp_path / "s", labels=LABELS[2], regions=["subject", "body"])
    )
    for dtype in (float, str, object):
        assert model.predict(pd.DataFrame({"subject": [], "body": []}, dtype=dtype)).shape == (0,)


def test_series_of_other_libraries(models):
    polars, narwhals = pytest.importorskip("polars"), pytest.importorskip("narwhals")
    expected = models["texts"].predict(TEXTS)
    for texts in (polars.Series(TEXTS.tolist()), narwhals.from_native(polars.Series(TEXTS.tolist()), series_only=True)):
        np.testing.assert_array_equal(models["texts"].predict(texts), expected)
