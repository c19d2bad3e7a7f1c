"""Document frequencies of data that must be binary: any other value is refused where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import InputError
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import Statistic


@dataclass(frozen=True)
class BinaryCounts(ClassCounts):
    """`ClassCounts` of documents, from data whose only values are 0 and 1.

    It has a name of its own, so that statistics which were kept without looking at values are not taken for it.
    """

    with_sums: bool = False
    with_documents: bool = True

    name: ClassVar[str] = "binary_counts"

    def supersets(self) -> tuple[Statistic, ...]:
        return ()

    def update_totals(self, totals: dict[str, Array], block: Block) -> None:
        check_binary(block)
        super().update_totals(totals, block)


def check_binary(block: Block) -> None:
    """Refuse a block with values besides 0 and 1."""
    if block.data.dtype.kind == "b":
        return
    bad = _first_other(block.entries.data)
    if bad >= 0:
        raise InputError(
            f"value {block.data[bad]} in {block.where(bad)}: Bernoulli naive Bayes takes 0 and 1; "
            "with binarize=0.0 every value above 0 counts as 1"
        )


@kernel
def _first_other(data: Array) -> int:
    """Position of the first value that is neither 0 nor 1; -1 if none."""
    for j in range(len(data)):
        if data[j] != 0 and data[j] != 1:
            return j
    return -1
