"""What passes over a store take, from one process: seconds, the peak, tasks, bytes that are read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import nfs_dask as nfs

from .cases import SCALE, K, counts

METHODS: dict[str, Any] = {
    "multinomial": lambda: nfs.SparseMultinomialNB(k=K),
    "bernoulli": lambda: nfs.SparseBernoulliNB(k=K, binarize=0.0),
    "l2": lambda: nfs.SparseCentroid(k=K),
    "hybrid": lambda: nfs.HybridNB(regions=2),
}


class Store:
    """A store that one process writes, and the others open."""

    timeout = 300

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(dir=Path.cwd())
        X, y = counts()
        nfs.ingest(X, f"{folder}/texts.zarr", labels=y)
        dense = np.random.default_rng(1).normal(size=(int(20_000 * SCALE), 100)).astype(np.float32)
        nfs.ingest(dense, f"{folder}/genes.zarr", labels=np.arange(len(dense)) % 2)
        return folder


class Fit(Store):
    """A fit of each method, one pass or more."""

    params = tuple(METHODS)
    param_names = ("method",)

    def setup(self, folder: str, method: str) -> None:
        self.data = nfs.open_dataset(f"{folder}/texts.zarr", reuse=False)
        METHODS[method]().fit(self.data)  # loads what was compiled

    def time_fit(self, folder: str, method: str) -> None:
        METHODS[method]().fit(self.data)

    def peakmem_fit(self, folder: str, method: str) -> None:
        METHODS[method]().fit(self.data)

    def track_read_bytes(self, folder: str, method: str) -> int:
        return nfs.plan(self.data, METHODS[method]()).read_nbytes

    track_read_bytes.unit = "bytes"  # type: ignore[attr-defined]


class Panels(Store):
    """Counting that is spooled and folded by ranges of columns."""

    def setup(self, folder: str) -> None:
        self.data = nfs.open_dataset(f"{folder}/texts.zarr", reuse=False)
        self.time_counts(folder)

    def time_counts(self, folder: str) -> None:
        self.data.reduce(self.data.class_counts(), nfs.SerialEngine(panels=4))

    def track_tasks(self, folder: str) -> int:
        return self.data.plan(self.data.class_counts(), nfs.SerialEngine(panels=4)).tasks


class Medians(Store):
    """Exact medians of columns without zeros."""

    def setup(self, folder: str) -> None:
        self.data = nfs.open_dataset(f"{folder}/genes.zarr", reuse=False)
        self.time_fit(folder)

    def time_fit(self, folder: str) -> None:
        nfs.SparseCentroid(k=10, metric="manhattan").fit(self.data)

    def peakmem_fit(self, folder: str) -> None:
        nfs.SparseCentroid(k=10, metric="manhattan").fit(self.data)
