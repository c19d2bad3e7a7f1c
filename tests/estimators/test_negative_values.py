"""Negative values are refused by what counts, wherever they lie; stores may hold them, for centers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs

X = np.array([[3, 1, 0], [-1, 2, 1], [4, 1, 2], [4, 7, 0]])  # no column has a negative sum
LABELS = ["a", "b", "a", "b"]
REFUSED = r"negative value -1(\.0)? in row 1, column 0; this method takes finite values of zero or more"


@pytest.fixture(params=["memory", "store of counts", "store of reals"])
def signed(request: pytest.FixtureRequest, tmp_path: Path) -> nfs.Dataset:
    values = sp.csr_array(X.astype(float) / (2 if request.param == "store of reals" else 1))
    values.data[values.data < 0] = -1
    place = tmp_path / "signed.zarr"
    return (
        nfs.open_dataset(values, labels=LABELS)
        if request.param == "memory"
        else nfs.ingest(values, place, labels=LABELS)
    )


@pytest.mark.parametrize("estimator", [nfs.SparseMultinomialNB(2), nfs.SparseBernoulliNB(2, binarize=0.0)])
@pytest.mark.parametrize("engine", [None, nfs.SerialEngine()])
def test_naive_bayes_refuses_them_in_every_place(signed: nfs.Dataset, estimator, engine) -> None:
    with pytest.raises(nfs.InputError, match=REFUSED):
        estimator.set_params(engine=engine).fit(signed)


def test_a_model_of_counts_refuses_to_score_them(signed: nfs.Dataset) -> None:
    model = nfs.SparseMultinomialNB(2).fit(np.abs(X), LABELS)
    for ask in (model.predict, lambda rows: nfs.evaluate(model, rows)):
        with pytest.raises(nfs.InputError, match=REFUSED):
            ask(signed)


def test_rows_without_negative_values_are_counted_in_a_store_that_has_some(tmp_path: Path) -> None:
    stored = nfs.ingest(sp.csr_array(X), tmp_path / "signed.zarr", labels=LABELS)
    there = nfs.open_dataset(stored.location, where={"label": "a"})
    assert there.reduce(there.class_counts()).state.totals["rows"].sum() == 2
    assert (
        nfs.SparseCentroid(2).fit(stored).predict(stored).tolist()
        == nfs.SparseCentroid(2).fit(X, LABELS).predict(X).tolist()
    )
