"""A table of words in files, for as long as one pass takes, in panels that workers need not lay out.

Whole counts of two classes are numbers and what words have of their own, see `nfs_dask.statistics.word_pairs`; others
are counts in the smallest type that holds them.
"""

from __future__ import annotations

import itertools

from nfs_dask.arrays.block import Array, narrow
from nfs_dask.files.arrayfile import ArrayFile, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.leave_one_out import LaidOut, laid_out
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.word_pairs import WordPairs

COUNTS = "counts"  # the array that the panels of a table have
NUMBERS, OWN = "numbers", "own"  # or of pairs


def store_table(folder: Folder, counts: Array, bounds: tuple[int, ...]) -> TableFiles:
    """Write a table (C, words) or (C, R, words) where workers find it, in panels."""
    for panel, (first, last) in enumerate(itertools.pairwise(bounds)):
        part = counts[..., first:last]
        found = laid_out(part) if part.dtype.kind != "f" and len(part) == 2 else part
        if isinstance(found, WordPairs):
            arrays = {NUMBERS: found.numbers, OWN: found.own}
        else:
            arrays = {COUNTS: found if found.dtype.kind == "f" else narrow(found)}
        write_arrays(folder, _name(panel), arrays, {})
    return TableFiles(folder, bounds)


class TableFiles(Panels):
    """What `store_table` has written. It travels as a place."""

    def __init__(self, folder: Folder, bounds: tuple[int, ...]) -> None:
        self._folder = folder
        self.bounds = bounds
        self.totals = {}

    def arrays(self, panel: int) -> dict[str, Array]:
        found = self.laid_out(panel)
        return {COUNTS: found.counts() if isinstance(found, WordPairs) else found}

    def laid_out(self, panel: int) -> LaidOut:
        """One panel as `RegionSums.add` takes it."""
        file = ArrayFile.open(self._folder, _name(panel))
        if COUNTS in file:
            return laid_out(file.array(COUNTS))
        found = WordPairs.of_own(file.array(NUMBERS), file.array(OWN))
        if int(found.numbers.max(initial=0)) >= len(found.pairs):
            raise file.damaged()
        return found


def _name(panel: int) -> str:
    return f"panel-{panel:05d}"
