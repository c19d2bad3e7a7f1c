"""What a store of texts holds, in memory, beside what scikit-learn makes of the same texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nfs_dask.dataset import Dataset


def matrix(dataset: Dataset) -> sparse.csr_array:
    """All rows of a store."""
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    starts = np.cumsum([0] + [int(block.indptr[-1]) for block in blocks]).tolist()
    indptr = [block.indptr[1:] + start for block, start in zip(blocks, starts, strict=False)]
    data, indices = (np.concatenate([getattr(block, part) for block in blocks]) for part in ("data", "indices"))
    return sparse.csr_array(
        (data, indices, np.concatenate([[0], *indptr])), shape=(dataset.n_rows, dataset.n_features), copy=False
    )


def labels(dataset: Dataset) -> np.ndarray:
    """The label of each row."""
    assert dataset.classes is not None
    blocks = dataset.source.blocks(0, dataset.source.n_blocks)
    found: np.ndarray = dataset.classes[np.concatenate([block.codes for block in blocks])]
    return found


def names(dataset: Dataset) -> list[str]:
    found = dataset.names(np.arange(dataset.n_features))
    assert found is not None
    return found


def assert_same_matrix(dataset: Dataset, expected: Any) -> None:
    """The very same entries, to the bit."""
    found = matrix(dataset)
    assert found.shape == expected.shape
    expected.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)
