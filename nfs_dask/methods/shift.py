"""Where about the data lie, so that sums of products can be taken around there and lose no digits.

References: SC (Calafiore and Fracastoro 2019) section 4.1, S.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.sources.views import some_blocks
from nfs_dask.statistics.moments import ClassMoments, moments


def about_means(dataset: Dataset, engine: Engine | None = None) -> Array:
    """The mean of each feature over the first block, (m,): near enough to the mean over all rows.

    Parameters
    ----------
    dataset
        With labels.
    engine
        Where the block is read.
    """
    first = Dataset(some_blocks(dataset.source, np.zeros(1, np.int64)), reuse=False)
    n_classes = len(dataset.known_classes(1))
    found = moments(first.reduce(ClassMoments(n_classes), engine).state)
    share = found.weight / max(found.weight.sum(), np.finfo(np.float64).tiny)
    return np.asarray(np.where(found.weight[:, None] > 0, found.means, 0.0).T @ share)
