"""Sparse centers of any input, on any engine: the same model."""

from __future__ import annotations

from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from scipy import sparse

import nfs_dask as nfs
from nfs_dask import DaskEngine, InputError, PlanError, SerialEngine, SparseCentroid
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.centers_by_hand import HIDDEN, METHODS, M, assert_same, data, each_method, each_of_columns, new
from tests.helpers.grids import each_once

NAMES = [f"w{i}" for i in range(M)]
SMALL = Layout(chunk=64, shard=256, row_chunk=8, row_shard=32, block=120)

IN_MEMORY = {
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "lists": lambda X: X.tolist(),
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "pydata COO": pydata.COO,
    "DataFrame": lambda X: pd.DataFrame(X, columns=NAMES),
    "objects": lambda X: X.astype(object),
}
SPARSE = ("csr_array", "csc_matrix", "coo", "pydata COO")
LAZY = {
    "dense chunks": lambda X: da.from_array(X, chunks=(25, 5)),
    "pydata chunks": lambda X: da.from_array(X, chunks=(25, -1)).map_blocks(pydata.COO),
    "scipy chunks": lambda X: da.from_array(X, chunks=(25, -1)).map_blocks(sparse.csr_matrix),
    "unknown chunks": lambda X: dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array(),
}


def assert_says_the_same(one, X, other, Y, method):
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        if name in HIDDEN[method]:
            continue
        found, expected = getattr(one, name)(X), getattr(other, name)(Y)
        if name == "predict":
            np.testing.assert_array_equal(found, expected)
        else:  # rows of a matrix product may be rounded differently in matrices of other heights
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def exact():
    """Values that float32 holds too."""
    X, y = data(3, seed=1)
    return X.astype(np.float32).astype(np.float64), y


@pytest.mark.parametrize(("method", "kind"), each_once(METHODS, IN_MEMORY))
def test_all_kinds_in_memory_agree(kind, method, exact):
    X, y = exact
    fitted, given = new(method).fit(X, y), IN_MEMORY[kind](X)
    model = new(method).fit(given, y)
    assert_same(model, fitted, method)
    assert_says_the_same(model, given, fitted, X, method)
    assert hasattr(model, "feature_names_in_") == (kind == "DataFrame")
    selected = model.transform(given)
    expected = fitted.transform(X)
    assert isinstance(selected, np.ndarray) == (
        method == "full" or kind in ("float32", "fortran", "lists", "DataFrame", "objects")
    )
    dense = selected if isinstance(selected, np.ndarray) else selected.todense()
    np.testing.assert_allclose(np.asarray(dense, float), expected, rtol=1e-9 if method == "full" else 0, atol=1e-9)


@pytest.mark.parametrize(("method", "kind"), each_once(METHODS, LAZY))
def test_lazy_input_stays_lazy_and_agrees(kind, method, exact):
    X, y = exact
    lazy = LAZY[kind](X)
    fitted = new(method).fit(X, y)
    model = new(method, engine=SerialEngine()).fit(lazy, y)
    assert_same(model, fitted, method)

    def refuse(*args, **keywords):
        raise AssertionError("something lazy was computed")

    with dask.config.set(scheduler=refuse):
        predicted, decision, selected = model.predict(lazy), model.decision_function(lazy), model.transform(lazy)
    np.testing.assert_array_equal(predicted.compute(scheduler="sync"), fitted.predict(X))
    np.testing.assert_allclose(decision.compute(scheduler="sync"), fitted.decision_function(X), rtol=1e-9, atol=1e-9)
    parts = [selected.blocks[i].compute(scheduler="sync") for i in range(selected.numblocks[0])]
    found = np.vstack([part if isinstance(part, np.ndarray) else part.todense() for part in parts])
    np.testing.assert_allclose(found, fitted.transform(X), rtol=1e-9, atol=1e-9)
    assert selected.shape[1] == 4


@pytest.fixture(scope="module")
def stored(tmp_path_factory, exact):
    """A store of several blocks."""
    X, y = exact
    path = tmp_path_factory.mktemp("stores") / "store.zarr"
    write_store(nfs.open_dataset(sparse.csr_array(X), labels=y).source, path, layout=SMALL)
    assert nfs.open_dataset(path).source.n_blocks > 5
    return path


@each_method
def test_a_store_is_the_same_as_memory(method, exact, tmp_path):
    X, y = exact
    dataset = nfs.ingest(X, tmp_path / "store.zarr", labels=y, names=NAMES)
    fitted, model = new(method).fit(X, y), new(method).fit(dataset)
    assert_same(model, fitted, method)
    assert_says_the_same(model, dataset, fitted, X, method)
    support = model.get_support(indices=True)
    assert model.get_feature_names_out().tolist() == [NAMES[i] for i in support]
    assert model.provenance_["fingerprint"] == dataset.fingerprint
    assert (model.provenance_["rows"], model.provenance_["reused"]) == (len(y), False)
    again = new(method, 0.5, always=["w3"]).fit(nfs.open_dataset(tmp_path / "store.zarr"))
    assert again.provenance_["reused"]
    assert_same(again, new(method, 0.5, always=[3]).fit(X, y), method)
    assert model.score(dataset, y) == fitted.score(X, y)
    own = new(method).fit(dataset, y, sample_weight=np.arange(len(y)) % 3 + 1)
    assert_same(own, new(method).fit(X, y, sample_weight=np.arange(len(y)) % 3 + 1), method)


def test_squares_that_are_kept_serve_sums_too(exact, tmp_path):
    X, y = exact
    dataset = nfs.ingest(X, tmp_path / "store.zarr", labels=y)
    assert not new("within").fit(dataset).provenance_["reused"]
    for method in ("l2", "total"):
        model = new(method).fit(dataset)
        assert model.provenance_["reused"]
        assert_same(model, new(method).fit(X, y), method)


@each_method
def test_blocks_and_panels_change_nothing(method, exact, stored):
    fitted = new(method).fit(*exact)
    dataset = nfs.open_dataset(stored, reuse=False)
    for panels in (1, 3) if method in ("l2", "within", "total") else (None, 1):
        model = new(method, engine=SerialEngine(panels=panels)).fit(dataset)
        assert_same(model, fitted, method)
    assert_says_the_same(model, dataset, fitted, exact[0], method)


def test_moments_too_wide_for_memory_are_solved_for_panel_by_panel(exact, stored, monkeypatch):
    dataset = nfs.open_dataset(stored, reuse=False)
    for method in ("l2", "within", "total"):
        fitted = new(method).fit(*exact)
        with monkeypatch.context() as patch:
            patch.setattr("nfs_dask.estimators.classifier.MOST_COUNTS", 1)
            model = new(method, engine=SerialEngine(panels=5)).fit(dataset)
            with pytest.raises(InputError, match="too many features"):
                _ = model.scores_
            with pytest.raises(PlanError, match="too many to hold and add to"):
                new(method).partial_fit(*exact, classes=["a", "b", "c"])
        np.testing.assert_array_equal(model.get_support(), fitted.get_support())
        np.testing.assert_array_equal(model.centers_, fitted.centers_)
        assert model.objective_ == fitted.objective_


def test_a_cluster_is_the_same_as_this_process(exact, stored, cluster):
    X, y = exact
    dataset, lazy = nfs.open_dataset(stored, reuse=False), LAZY["scipy chunks"](X).persist()
    for method in METHODS:
        fitted = new(method).fit(X, y)
        model = new(method, engine=DaskEngine()).fit(dataset)
        assert_same(model, fitted, method)
        assert_says_the_same(model, dataset, fitted, X, method)
        model = new(method).fit(lazy, y)
        assert_same(model, fitted, method)
        np.testing.assert_array_equal(model.predict(lazy).compute(), fitted.predict(X))


@each_method
def test_rows_of_other_features_are_refused(method, tmp_path):
    X, y = data(2)
    model = new(method).fit(X, y)
    message = "X has 11 features, but SparseCentroid is expecting 12 features as input"
    narrow = nfs.ingest(X[:, 1:], tmp_path / "narrow.zarr", labels=y)
    for given in (X[:, 1:], sparse.csr_array(X[:, 1:]), narrow):
        for name in ("predict", "decision_function", "transform"):
            with pytest.raises(ValueError, match=message):
                getattr(model, name)(given)


@each_of_columns
def test_inverse_transform_puts_columns_back(method):
    X, y = data(2)
    model = new(method).fit(X, y)
    expected = np.where(model.get_support(), X, 0)
    back = model.inverse_transform(model.transform(X))
    assert sparse.issparse(back)
    np.testing.assert_array_equal(back.toarray(), expected)


def test_a_hundred_million_features_take_no_memory():
    """A fit in memory holds sums of all features; saying something of documents does not."""
    wide = 10**8
    narrow = SparseCentroid(2).fit([[0.0, 1.0], [2.0, 5.0]], [0, 1])
    model = SparseCentroid(2)
    model.model_ = replace(narrow.model_, support=np.array([7, wide - 1]), n_features=wide)
    model.classes_, model.n_features_in_ = narrow.classes_, wide
    X = sparse.csr_array(([2.0, 5.0, 3.0], ([0, 0, 1], [7, wide - 1, 9])), shape=(2, wide))
    assert model.predict(X).tolist() == [1, 0]
    assert model.transform(X).shape == (2, 2)
    assert model.coef_.shape == (1, wide) and model.coef_.nnz == 2
