"""Counting per class as others would write it: over blocks of .npz files, with numpy and scipy, Dask or dask-ml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


def load(path: Path, n_features: int) -> tuple[Any, np.ndarray]:
    with np.load(path) as f:
        return sparse.csr_matrix((f["data"], f["indices"], f["indptr"]), shape=(len(f["y"]), n_features)), f["y"]


def n_rows(path: Path) -> int:
    """Read without the entries."""
    with np.load(path) as f:
        return len(f["y"])


def numpy_loop(paths: list[Path], n_features: int) -> np.ndarray:
    """f += X_block.T @ Y, the loop anyone would write first."""
    total = np.zeros((n_features, 2))
    for path in paths:
        X, y = load(path, n_features)
        total += X.T @ np.eye(2)[y]
    return total.T


def map_blocks(client: Any, paths: list[Path], n_features: int) -> np.ndarray:
    """Dense partials of each block, summed by a tree."""
    import dask.array as da

    names = da.from_array(np.array([str(p) for p in paths]), chunks=1)

    def partial(name: np.ndarray) -> np.ndarray:
        X, y = load(Path(name[0]), n_features)
        return (X.T @ np.eye(2)[y]).T[None]

    parts = names.map_blocks(partial, chunks=(1, 2, n_features), new_axis=[1, 2], dtype=float)
    return client.compute(parts.sum(axis=0, split_every=2)).result()


def dask_ml(client: Any, paths: list[Path], n_features: int) -> np.ndarray:
    """Incremental(MultinomialNB) over the blocks."""
    import dask
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from sklearn.naive_bayes import MultinomialNB

    blocks = [dask.delayed(load)(path, n_features) for path in paths]
    rows = [n_rows(path) for path in paths]
    meta = sparse.csr_matrix((0, n_features), dtype=np.uint8)
    X = da.concatenate([da.from_delayed(b[0], (r, n_features), meta=meta) for b, r in zip(blocks, rows, strict=True)])
    y = da.concatenate([da.from_delayed(b[1], (r,), dtype=np.int32) for b, r in zip(blocks, rows, strict=True)])
    with client.as_current():
        model = Incremental(MultinomialNB()).fit(X, y, classes=[0, 1])
    return model.estimator_.feature_count_
