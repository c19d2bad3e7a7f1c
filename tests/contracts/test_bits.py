"""The same data give the same model to the bit, whatever holds them and whoever counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from scipy import sparse

import nfs_dask as nfs

METHODS: dict[str, Any] = {
    "multinomial": nfs.SparseMultinomialNB(k=12, alpha=0.5),
    "weighted": nfs.SparseMultinomialNB(k=12, class_weight="balanced"),
    "bernoulli": nfs.SparseBernoulliNB(k=12),
    "l2": nfs.SparseCentroid(k=12),
    "l1": nfs.SparseCentroid(k=12, metric="manhattan"),
    "mahalanobis": nfs.SparseCentroid(k=12, metric="mahalanobis", variance_floor=0.1),
    "hybrid": nfs.HybridNB(k=30),
    "error": nfs.ErrorRateSelector(k=5),
}
RNG = np.random.default_rng(11)
Y = RNG.integers(0, 3, 600)
X = sparse.csr_array(RNG.poisson(0.05 + 0.2 * RNG.random((3, 90))[Y] ** 4))
CONTAINERS: dict[str, Callable[[], Any]] = {
    "csc": lambda: X.tocsc(),
    "coo": lambda: X.tocoo(),
    "float32": lambda: X.astype("float32"),
    "unsorted": lambda: unsorted(X),
    "dense": lambda: X.toarray(),
    "Fortran": lambda: np.asfortranarray(X.toarray().astype(float)),
    "uint8": lambda: X.toarray().astype("uint8"),
    "pydata": lambda: pydata.COO.from_scipy_sparse(X),
    "frame": lambda: pd.DataFrame(X.toarray()),
    "sparse frame": lambda: pd.DataFrame.sparse.from_spmatrix(X),
    "dask": lambda: da.from_array(X.toarray(), chunks=(77, -1)),
    "dask, by columns": lambda: da.from_array(X.toarray(), chunks=(200, 25)),
    "dask of csr": lambda: da.from_array(X.toarray(), chunks=(130, -1)).map_blocks(sparse.csr_array),
    "dask frame": lambda: dd.from_pandas(pd.DataFrame(X.toarray()), npartitions=4),
}
ENGINES: dict[str, Any] = {
    "panels": nfs.SerialEngine(panels=4),
    "cluster": nfs.DaskEngine(),
    "panels on a cluster": nfs.DaskEngine(panels=3),
}


def unsorted(matrix: Any) -> Any:
    """The same matrix with the entries of each row in another order, and some of them split in two."""
    rows, columns = matrix.nonzero()
    rows, columns, values = (
        np.tile(rows, 2),
        np.tile(columns, 2),
        np.concatenate([matrix.data - 1, matrix.data * 0 + 1]),
    )
    order = np.lexsort([RNG.permutation(len(rows)), rows])
    starts = np.searchsorted(rows[order], np.arange(matrix.shape[0] + 1))
    return sparse.csr_array((values[order], columns[order], starts), shape=matrix.shape)


def numbers(model: Any) -> dict[str, bytes]:
    found = {"support": model.get_support(indices=True), "decision": np.asarray(model.decision_function(X[:50]))}
    for name in ("objective_", "upper_bound_", "intercept_", "dual_point_", "centers_"):
        if (value := getattr(model, name, None)) is not None:
            found[name] = np.asarray(value, dtype=float)
    return {name: value.tobytes() for name, value in found.items()}


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, bytes]]:
    return {name: numbers(estimator.fit(X, Y)) for name, estimator in METHODS.items()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bits") / "store"
    nfs.ingest(X, path, labels=Y, block_bytes=2000)
    return path


@pytest.mark.filterwarnings("ignore:.*a column more than once")
@pytest.mark.parametrize("method", METHODS)
def test_containers(method: str, expected: dict[str, Any], tmp_path: Path) -> None:
    for name, make in CONTAINERS.items():
        held = make()
        labels = da.from_array(Y, chunks=held.chunks[0]) if isinstance(held, da.Array) else Y
        if isinstance(held, dd.DataFrame):
            labels = dd.from_pandas(pd.Series(Y), npartitions=4)
        assert numbers(METHODS[method].fit(held, labels)) == expected[method], name


@pytest.mark.parametrize("method", METHODS)
def test_files(method: str, expected: dict[str, Any], store: Path, tmp_path: Path) -> None:
    adata = anndata.AnnData(sparse.csr_matrix(X.astype("float32")), obs=pd.DataFrame({"topic": Y.astype(str)}))
    adata.write_h5ad(tmp_path / "x.h5ad")
    adata.write_zarr(tmp_path / "x.zarr")
    found = METHODS[method].fit(nfs.open_dataset(store, reuse=False))
    assert numbers(found) == expected[method]
    for name in ("x.h5ad", "x.zarr"):
        found = METHODS[method].fit(nfs.open_dataset(tmp_path / name, labels="topic", reuse=False))
        assert numbers(found) == expected[method], name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_engines(method: str, engine: str, expected: dict[str, Any], store: Path, cluster: Any) -> None:
    from sklearn.base import clone

    estimator = clone(METHODS[method]).set_params(engine=ENGINES[engine])
    assert numbers(estimator.fit(nfs.open_dataset(store, reuse=False))) == expected[method]
