"""Features of documents by a table in memory, without a view."""

from __future__ import annotations

from nfs_dask.arrays.block import Array, Block
from nfs_dask.statistics.leave_one_out import RegionSums, RegionTable


def region_features(
    block: Block, table: RegionTable, counts: Array, *, normalize: bool, leave_out: bool, trusted: bool = False
) -> Array:
    """The features of the documents of a block, by a table that is in memory as a whole.

    Parameters
    ----------
    block
        Documents over ``n_regions * n_words`` columns; with labels if they are to be left out.
    table, counts
        As in `RegionSums`.
    normalize
        Whether to divide by the number of tokens of a region.
    leave_out
        Whether the table was counted from these documents, so that each has to leave it first.

    Returns
    -------
    (n, R) or (n, R, C)
        For two classes the difference of the second to the first; for more, of each class.
    """
    sums = RegionSums(block, table, leave_out=leave_out, trusted=trusted)
    sums.add(counts)
    return sums.features(normalize=normalize)
