"""Tables that were written against the counts they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.sources.word_table_files import COUNTS, store_table
from nfs_dask.statistics.word_pairs import OWN, WordPairs

BOUNDS = (0, 3, 4, 40)


@pytest.mark.parametrize("shape", [(2, 40), (2, 3, 40), (4, 40), (3, 2, 40)])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_what_is_read_is_what_was_written(shape: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    counts = np.random.default_rng(0).geometric(0.01, shape).astype(dtype) * (1 if dtype == "int64" else 0.3)
    table = store_table(Folder.of(tmp_path).scratch, counts, BOUNDS)
    assert table.bounds == BOUNDS
    for panel in range(3):
        first, last = BOUNDS[panel : panel + 2]
        want = counts[..., first:last].reshape(shape[0], -1, last - first)
        np.testing.assert_array_equal(table.arrays(panel)[COUNTS], want)
        assert isinstance(table.laid_out(panel), WordPairs) == (shape[0] == 2 and dtype == "int64")


def test_numbers_that_stand_for_nothing_are_refused(tmp_path: Path) -> None:
    folder = Folder.of(tmp_path)
    table = store_table(folder, np.ones((2, 5), np.int64), (0, 5))
    arrays = {"numbers": np.array([[1, OWN + 1]], np.uint16), "own": np.array([[500, 2]])}
    write_arrays(folder, "panel-00000", arrays, {})
    with pytest.raises(StoreError, match="damaged"):
        table.laid_out(0)
