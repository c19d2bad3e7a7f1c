"""Others who compute with a store of ours: AnnData and scanpy get what they get of AnnData's own files."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, ToySource

RNG = np.random.default_rng(7)
COUNTS = RNG.integers(1, 201, (120, 60)) * (RNG.random((120, 60)) < 0.3)
COUNTS[0, :5] = 200
NAMES = [f"gene {i}" for i in range(60)]


@pytest.fixture(params=["uint8", "int64", "float32"])
def opened(tmp_path, request):
    """The store as anndata reads it."""
    write_store(ToySource(sparse.csr_matrix(COUNTS.astype(request.param)), names=NAMES), tmp_path / "s", layout=SMALL)
    return anndata.read_zarr(tmp_path / "s")


@pytest.fixture
def truth():
    """The same as anndata holds it in memory, in floats."""
    rows = pd.DataFrame(index=[str(i) for i in range(120)])
    return anndata.AnnData(sparse.csr_matrix(COUNTS.astype("float64")), rows, pd.DataFrame(index=NAMES))


def test_sums_products_and_differences_are_those_of_the_counts(opened):
    X = opened.X
    np.testing.assert_array_equal((X * 2).toarray(), COUNTS * 2)
    np.testing.assert_array_equal((X + X).toarray(), COUNTS * 2)
    np.testing.assert_array_equal((X - 3 * X).toarray(), -2 * COUNTS)
    np.testing.assert_array_equal((-X).toarray(), -COUNTS)
    np.testing.assert_array_equal((X.T @ X).toarray(), COUNTS.T @ COUNTS)
    np.testing.assert_array_equal(X.multiply(X).toarray(), COUNTS**2)
    np.testing.assert_array_equal(X.power(3).toarray(), COUNTS**3)


def test_matrices_can_be_turned_into_any_form(opened):
    X = opened.X
    for form in ("coo", "csc", "csr", "lil", "dok"):
        np.testing.assert_array_equal(X.asformat(form).toarray(), COUNTS)
    X.data[:5] = 0
    X.eliminate_zeros()
    X.sort_indices()
    X.check_format()
    assert anndata.concat([opened, opened], index_unique="-").shape == (240, 60)


@pytest.fixture
def sc():
    return pytest.importorskip("scanpy", reason="scanpy is not installed")


STEPS = {
    "qc": lambda sc, a: sc.pp.calculate_qc_metrics(a, percent_top=[10], inplace=True),
    "normalize": lambda sc, a: sc.pp.normalize_total(a, target_sum=1e4),
    "log1p": lambda sc, a: sc.pp.log1p(a),
    "normalize and log1p": lambda sc, a: (sc.pp.normalize_total(a), sc.pp.log1p(a)),
    "filter": lambda sc, a: (sc.pp.filter_genes(a, min_counts=3000), sc.pp.filter_cells(a, min_counts=1500)),
    "scale": lambda sc, a: sc.pp.scale(a, zero_center=False),
    "variable": lambda sc, a: (sc.pp.log1p(a), sc.pp.highly_variable_genes(a, n_top_genes=20)),
    "downsample": lambda sc, a: sc.pp.downsample_counts(a, counts_per_cell=500, random_state=0),
}


@pytest.mark.parametrize("step", STEPS)
def test_scanpy_finds_what_it_finds_in_floats(sc, opened, truth, step):
    with warnings.catch_warnings(action="ignore"):
        for data in (opened, truth):
            STEPS[step](sc, data)
    np.testing.assert_allclose(opened.X.toarray(), truth.X.toarray(), rtol=1e-5)
    for got, expected in ((opened.obs, truth.obs), (opened.var, truth.var)):
        pd.testing.assert_frame_equal(got, expected, check_dtype=False, check_index_type=False, rtol=1e-4)
