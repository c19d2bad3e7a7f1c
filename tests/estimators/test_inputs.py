"""Every kind of input gives the same model and the same predictions, lazily where it is lazy, and nothing gets wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from scipy import sparse
from sklearn.base import clone

import nfs_dask as nfs
from nfs_dask import (
    DaskEngine,
    InputError,
    PlanError,
    SerialEngine,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
    load_model,
)
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel

K = 6
ESTIMATORS = {"bernoulli": SparseBernoulliNB(K, binarize=0.0), "multinomial": SparseMultinomialNB(K)}
METHODS = ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function"]


def dense_chunks(X):
    return da.from_array(X, chunks=(25, 12))  # cut along the columns too


def sparse_chunks(X):
    return da.from_array(X, chunks=(25, -1)).map_blocks(pydata.COO)


def scipy_chunks(X):
    return da.from_array(X, chunks=(25, -1)).map_blocks(sparse.csr_matrix)


def unknown_chunks(X):
    return dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()


IN_MEMORY = {
    "numpy": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "lists": lambda X: X.tolist(),
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "pydata COO": pydata.COO,
    "pydata GCXS": lambda X: pydata.GCXS(pydata.COO(X), compressed_axes=[0]),
    "DataFrame": lambda X: pd.DataFrame(X, columns=[f"w{i}" for i in range(X.shape[1])]),
    "sparse DataFrame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
}
LAZY = {
    "dense chunks": dense_chunks,
    "pydata chunks": sparse_chunks,
    "scipy chunks": scipy_chunks,
    "unknown chunks": unknown_chunks,
}


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    y = np.append([0, 1, 2], rng.integers(3, size=97))
    return rng.poisson(rng.gamma(0.5, size=(3, 40))[y]), np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request, corpus):
    """What the plain numpy input gives."""
    return ESTIMATORS[request.param].__class__(**ESTIMATORS[request.param].get_params()).fit(*corpus)


def new(fitted, **parameters):
    return type(fitted)(**{**fitted.get_params(), **parameters})


def assert_same(one, other):
    np.testing.assert_array_equal(one.get_support(indices=True), other.get_support(indices=True))
    assert one.objective_ == other.objective_
    assert one.upper_bound_ == other.upper_bound_
    np.testing.assert_array_equal(one.model_.present, other.model_.present)
    np.testing.assert_array_equal(one.class_count_, other.class_count_)


@pytest.mark.parametrize("kind", IN_MEMORY)
def test_all_kinds_in_memory_agree(kind, fitted, corpus):
    X, y = IN_MEMORY[kind](corpus[0]), corpus[1]
    model = new(fitted).fit(X, y)
    assert_same(model, fitted)
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(fitted, method)(corpus[0]), err_msg=method)
    selected = model.transform(X)
    expected = corpus[0][:, fitted.get_support(indices=True)]
    if kind.startswith("pydata"):
        assert type(selected) is type(X)
        np.testing.assert_array_equal(selected.todense(), expected)
    elif kind in ("csr_array", "csr_matrix", "csc", "coo", "sparse DataFrame"):
        assert sparse.issparse(selected)
        assert isinstance(selected, sparse.sparray) == (kind != "csr_matrix")
        np.testing.assert_array_equal(selected.toarray(), expected)
    else:
        assert isinstance(selected, np.ndarray)
        np.testing.assert_array_equal(selected, expected)


@pytest.mark.parametrize("kind", LAZY)
def test_lazy_input_stays_lazy_and_agrees(kind, fitted, corpus):
    X, y = LAZY[kind](corpus[0]), corpus[1]
    labels = da.from_array(y, chunks=25) if kind != "unknown chunks" else y
    model = new(fitted, engine=SerialEngine()).fit(X, labels)
    assert_same(model, fitted)
    with dask.config.set(scheduler=refuse):
        results = {method: getattr(model, method)(X) for method in METHODS}
        selected = model.transform(X)
    for method, result in results.items():
        expected = getattr(fitted, method)(corpus[0])
        assert result.ndim == expected.ndim
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.compute(scheduler="sync"), expected, err_msg=method)
    chunk = selected.blocks[0].compute(scheduler="sync")
    assert isinstance(chunk, {"pydata chunks": pydata.COO, "scipy chunks": sparse.csr_matrix}.get(kind, np.ndarray))
    parts = [selected.blocks[i].compute(scheduler="sync") for i in range(selected.numblocks[0])]
    found = np.vstack([part if isinstance(part, np.ndarray) else part.todense() for part in parts])
    np.testing.assert_array_equal(found, corpus[0][:, fitted.get_support(indices=True)])


def refuse(*args, **keywords):
    raise AssertionError("something lazy was computed")


def test_a_dask_frame_stays_one(fitted, corpus):
    columns = [f"w{i}" for i in range(40)]
    frame = pd.DataFrame(corpus[0], columns=columns)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = new(fitted, engine=SerialEngine()).fit(lazy, corpus[1])
    assert_same(model, fitted)
    assert model.feature_names_in_.tolist() == columns
    assert model.get_feature_names_out().tolist() == [f"w{i}" for i in fitted.get_support(indices=True)]
    np.testing.assert_array_equal(model.predict(lazy).compute(), fitted.predict(corpus[0]))
    selected = model.transform(lazy)
    assert isinstance(selected, dd.DataFrame)
    pd.testing.assert_frame_equal(selected.compute(), frame.iloc[:, fitted.get_support(indices=True)])


def test_a_store_is_the_same_as_memory(fitted, corpus, tmp_path):
    names = [f"w{i}" for i in range(40)]
    dataset = nfs.ingest(sparse.csr_array(corpus[0]), tmp_path / "store.zarr", labels=corpus[1], names=names)
    model = new(fitted).fit(dataset)
    assert_same(model, fitted)
    assert model.get_feature_names_out().tolist() == [f"w{i}" for i in fitted.get_support(indices=True)]
    assert not hasattr(model, "feature_names_in_")
    assert model.provenance_["fingerprint"] == dataset.fingerprint
    assert model.provenance_["rows"] == 100
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(dataset), getattr(fitted, method)(corpus[0]))
    selected = model.transform(dataset)
    np.testing.assert_array_equal(selected.toarray(), corpus[0][:, fitted.get_support(indices=True)])
    assert model.score(dataset, corpus[1]) == fitted.score(*corpus)
    again = new(fitted, alpha=0.5, always=["w3"]).fit(nfs.open_dataset(tmp_path / "store.zarr"))
    assert again.provenance_["reused"]  # no document was read
    assert_same(again, new(fitted, alpha=0.5, always=[3]).fit(*corpus))


def test_a_cluster_is_the_same_as_this_process(fitted, corpus, tmp_path, cluster):
    dataset = nfs.ingest(sparse.csr_array(corpus[0]), tmp_path / "store.zarr", labels=corpus[1], engine=SerialEngine())
    fresh = nfs.open_dataset(tmp_path / "store.zarr", reuse=False)
    for panels in (1, 3):
        model = new(fitted, engine=DaskEngine(panels=panels, spool=str(tmp_path))).fit(fresh)
        assert model.provenance_["plan"]["panels"] >= panels
        assert_same(model, fitted)
    np.testing.assert_array_equal(model.predict(dataset), fitted.predict(corpus[0]))
    np.testing.assert_array_equal(model.transform(dataset).toarray(), fitted.transform(corpus[0]))
    lazy = scipy_chunks(corpus[0]).persist()
    model = new(fitted).fit(lazy, corpus[1])
    assert_same(model, fitted)
    np.testing.assert_array_equal(model.predict(lazy).compute(), fitted.predict(corpus[0]))
    assert model.transform(lazy).blocks[0].compute().shape == (25, K)


# Nothing of the full width is ever dense.

WIDE = 10**8


def wide_model(threshold=None):
    support = np.array([5, 1000, 99_999_999])
    present = np.log([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    return NaiveBayesModel(
        method="bernoulli" if threshold is not None else "multinomial",
        classes=np.array(["no", "yes"]),
        class_count=np.ones(2),
        class_log_prior=np.log([0.5, 0.5]),
        n_features=WIDE,
        alpha=1.0,
        support=support,
        present=present,
        absent=None if threshold is None else np.log1p(-np.exp(present)),
        threshold=threshold,
        evidence=Evidence(-1.0, 0.0, True, None, 1),
    )


@pytest.mark.parametrize("estimator", [SparseBernoulliNB(binarize=0.0), SparseMultinomialNB()])
def test_scoring_a_hundred_million_features_takes_no_memory(estimator, monkeypatch):
    def densified(*args, **keywords):
        raise AssertionError("a matrix was densified")

    bernoulli = isinstance(estimator, SparseBernoulliNB)
    estimator.model_ = wide_model(0.0 if bernoulli else None)
    estimator.n_features_in_, estimator.classes_ = WIDE, estimator.model_.classes
    entries = ([3, 1, 2], ([0, 1, 2], [5, 99_999_999, 77]))
    X = sparse.csr_array(entries, shape=(3, WIDE))
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        monkeypatch.setattr(kind, "toarray", densified)
        monkeypatch.setattr(kind, "todense", densified)
    monkeypatch.setattr(pydata.COO, "todense", densified)
    step = np.log(0.5) - np.log(0.2)
    expected = [3 * step, -step, 0.0]
    if bernoulli:
        step += np.log(0.8) - np.log(0.5)
        expected = [step, -step, 0.0]
    other = pydata.COO(np.array(entries[1]), np.array(entries[0]), shape=X.shape)
    lazy = da.from_array(other, chunks=(2, -1), asarray=False)
    for matrix in (X, sparse.csr_matrix(X), sparse.coo_array(X), other):
        np.testing.assert_allclose(estimator.decision_function(matrix), [-expected[0], -expected[1], 0], atol=1e-12)
        assert estimator.predict(matrix).tolist() == ["no", "yes", "no"]  # of equal ones the first
        selected = estimator.transform(matrix)
        assert selected.shape == (3, 3)
        assert selected.nnz == 2
        assert estimator.inverse_transform(selected).shape == (3, WIDE)
    assert estimator.predict(lazy).compute(scheduler="sync").tolist() == ["no", "yes", "no"]
    restored = estimator.inverse_transform(estimator.transform(lazy))
    assert restored.shape == (3, WIDE)
    assert restored.compute(scheduler="sync").nnz == 2
    assert estimator.coef_.shape == (1, WIDE)
    assert estimator.coef_.nnz == 3
    assert "x99999999" in estimator.get_feature_names_out()


@pytest.mark.parametrize("name", ["toarray", "todense"])
def test_fitting_densifies_nothing(fitted, corpus, name, monkeypatch):
    X = sparse.csr_array(corpus[0])

    def densified(*args, **keywords):
        raise AssertionError("a matrix was densified")

    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.coo_matrix):
        monkeypatch.setattr(kind, name, densified)
    model = new(fitted).fit(X, corpus[1])
    assert model.transform(X).shape == (100, K)
    assert model.predict_proba(X).shape == (100, 3)
    assert np.count_nonzero(model.coef_) == 3 * K


def test_more_counts_than_memory_takes_are_not_added_to():
    X = sparse.csr_array(([1, 1], ([0, 1], [5, 99_999_999])), shape=(2, WIDE))
    with pytest.raises(PlanError, match="100,000,000 features in 2 classes are too many to hold and add to"):
        SparseMultinomialNB().partial_fit(X, [0, 1], classes=[0, 1])


def test_inverse_transform_puts_columns_back(fitted, corpus):
    X, support = corpus[0], fitted.get_support(indices=True)
    expected = np.zeros_like(X)
    expected[:, support] = X[:, support]
    for Z in (fitted.transform(X), fitted.transform(sparse.csr_array(X)), fitted.transform(X).tolist()):
        back = fitted.inverse_transform(Z)
        assert sparse.issparse(back)
        np.testing.assert_array_equal(back.toarray(), expected)
    with pytest.raises(InputError, match="a different shape than during fitting: 2 columns, not 6"):
        fitted.inverse_transform(X[:, :2])


def test_rows_of_other_features_are_refused(fitted, corpus, tmp_path):
    with pytest.raises(ValueError, match="X has 39 features, but Sparse.*NB is expecting 40 features as input"):
        fitted.predict(corpus[0][:, 1:])
    dataset = nfs.ingest(corpus[0][:, 1:], tmp_path / "store.zarr", labels=corpus[1])
    with pytest.raises(InputError, match="X has 39 features, but Sparse.*NB is expecting 40 features as input"):
        fitted.transform(dataset)
    with pytest.raises(InputError, match="negative value -1 in row 0"):
        fitted.predict(-corpus[0].clip(max=1))


@pytest.mark.parametrize("estimator", [SparseMultinomialNB(2), SparseBernoulliNB(2, binarize=0.0)])
def test_sums_beyond_floats_are_refused(estimator):
    X, y = np.array([[1.0, 0, 2], [0, 1, 1]] * 10), ["a", "b"] * 10
    with pytest.raises(InputError, match="scale them down"):
        estimator.fit(X, y, sample_weight=np.full(20, 1.5e308))
    with np.errstate(over="ignore"), pytest.raises(InputError, match="scale them down"):
        SparseMultinomialNB(2).fit(X * 0.8e308, y)


@pytest.mark.parametrize("made", [SparseMultinomialNB(2), SparseCentroid(2), SparseCentroid(2, metric="manhattan")])
def test_a_loaded_model_knows_the_names_of_its_features(made: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.poisson(2, (60, 5)), columns=list("abcde"))
    y = np.where(X["b"] + X["d"] > 4, "many", "few")
    fitted = clone(made).fit(X, y)
    fitted.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))  # without a warning
    np.testing.assert_array_equal(loaded.predict(X.to_numpy()), fitted.predict(X))
    first, second = fitted.get_feature_names_out()
    swapped = X.rename(columns={first: second, second: first})
    with pytest.raises(InputError, match="in the same order"):
        loaded.predict(swapped)
    with pytest.raises(ValueError, match="5 features"):
        loaded.predict(X[["a", "b"]])
