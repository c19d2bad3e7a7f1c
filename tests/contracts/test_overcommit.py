"""A plan that does not fit is refused, and can be overruled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import nfs_dask as nfs


def test_a_plan_that_does_not_fit_runs_where_it_is_overruled(tmp_path: Path) -> None:
    y = np.repeat(["a", "b"], 200)
    columns = np.random.default_rng(0).integers(16_000_000, size=8000)
    X = sparse.csr_array((np.ones(8000, np.int8), (np.arange(8000) % 400, columns)), shape=(400, 16_000_000))
    store = nfs.ingest(X, tmp_path / "s.zarr", labels=y)
    small = {"workers": 1, "memory_limit": "600MiB", "panels": 1}
    with pytest.raises(nfs.PlanError, match=r'Give each worker .*on_overcommit="warn" \(--overcommit warn\)'):
        nfs.SparseMultinomialNB(k=5, engine=nfs.DaskEngine(**small)).fit(store)
    engine = nfs.DaskEngine(**small, on_overcommit="warn")
    with pytest.warns(nfs.NfsDaskWarning, match="It is run all the same"):
        found = nfs.SparseMultinomialNB(k=5, engine=engine).fit(store)
    there = nfs.SparseMultinomialNB(k=5).fit(X, y)
    assert found.get_support(indices=True).tolist() == there.get_support(indices=True).tolist()
    fresh = nfs.open_dataset(tmp_path / "s.zarr", reuse=False)
    with pytest.raises(nfs.InputError, match='on_overcommit=\'no\'; give "refuse" or "warn"'):
        nfs.SparseMultinomialNB(k=5, engine=nfs.DaskEngine(**small, on_overcommit="no")).fit(fresh)
