"""The word tables of regions, from counts of columns: folded panel by panel, so that nobody holds all columns.

References: HYB (Raina et al. 2003) (3), (6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, PlanError
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_multinomial
from nfs_dask.models.model import Evidence
from nfs_dask.statistics.class_totals import ArrayTotals, PanelTotals
from nfs_dask.statistics.counts import sums
from nfs_dask.statistics.leave_one_out import RegionTable
from nfs_dask.statistics.panels import Panels
from nfs_dask.units import MiB, format_bytes

PANEL_NBYTES = 32 * MiB  # of folded counts
MOST_COUNTS = 1 << 30  # bytes of a table that are held in memory; a wider one is chosen from panel by panel


class WordPanels(Panels):
    """Class counts of the columns of all regions as counts of words, in arrays of the same names.

    Parameters
    ----------
    panels
        Of a `ClassCounts` over R * V columns.
    n_regions
        R.
    apart
        Whether regions stay apart, (C, R, words), or are added up, (C, words).
    """

    def __init__(self, panels: Panels, n_regions: int, apart: bool = False) -> None:
        self._panels = panels
        self._n_regions = n_regions
        self._apart = apart
        self.totals = panels.totals
        n_words = panels.n_features // n_regions
        n = min(n_words, -(-self.nbytes_of(n_words) // PANEL_NBYTES))
        self.bounds = tuple(n_words * i // n for i in range(n + 1))

    @property
    def n_classes(self) -> int:
        return len(self.totals["rows"])

    def nbytes_of(self, n_words: int) -> int:
        """Bytes of the counts of so many words."""
        return self.n_classes * (self._n_regions if self._apart else 1) * n_words * 8

    def arrays(self, panel: int) -> dict[str, Array]:
        first, last = self.bounds[panel : panel + 2]
        n_words = self.n_features
        regions = (self._columns(r * n_words + first, r * n_words + last) for r in range(self._n_regions))
        counts = np.stack([*regions], axis=1) if self._apart else _sum(regions)
        return {"real_sums" if counts.dtype.kind == "f" else "sums": counts}  # panels differ in this

    def totals_of_words(self) -> Array:
        """N: of all words, (C,), or (C, R) of regions apart."""
        return _sum(sums(state.arrays).sum(axis=-1) for _, state in self)

    def whole(self) -> Array:
        """The counts of all words; each panel of columns is read once."""
        n_words = self.n_features
        shape = (self.n_classes, self._n_regions, n_words) if self._apart else (self.n_classes, n_words)
        found = np.zeros(shape, np.int64)
        for panel in range(len(self._panels)):
            start, counts = self._panels.bounds[panel], sums(self._panels.stored(panel))
            found = found if counts.dtype.kind != "f" else found.astype(np.float64, copy=False)
            for r in range(self._n_regions):
                first, last = np.clip((start - r * n_words, start - r * n_words + counts.shape[1]), 0, n_words)
                of_region = found[:, r] if self._apart else found
                of_region[:, first:last] += counts[:, r * n_words + first - start :][:, : last - first]
        return found

    def of_words(self, words: Array) -> Array:
        """The counts of some words, ascending."""
        starts = np.arange(self._n_regions)[:, None] * self.n_features
        found = sums(self._panels.columns((starts + words).ravel()))
        apart = found.reshape(len(found), self._n_regions, len(words))
        return apart if self._apart else apart.sum(axis=1)

    def _columns(self, first: int, last: int) -> Array:
        """The counts of a range of columns; one panel that has some of them is read at a time."""
        bounds = self._panels.bounds
        lowest, beyond = np.searchsorted(bounds, first, side="right") - 1, np.searchsorted(bounds, last, side="left")
        parts = []
        for panel in range(int(lowest), int(beyond)):
            start = bounds[panel]
            parts.append(sums(self._panels.arrays(panel))[:, max(first - start, 0) : last - start].copy())
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class WordTable:
    """The words that documents are seen to have, and their counts."""

    table: RegionTable
    counts: Array  # (C, n) or (C, R, n)
    words: Array  # (n,) int64 ascending
    evidence: Evidence | None


def make_table(
    classes: Array, panels: Panels, n_regions: int, *, alpha: float, k: int | None, separate: bool
) -> WordTable:
    """The table of all words, or of those that the sparse multinomial model of k words has.

    Parameters
    ----------
    classes
        (C,) labels.
    panels
        Of a `ClassCounts` over the columns of all regions.
    n_regions
        How many there are.
    alpha, k, separate
        See `nfs_dask.methods.hybrid.HybridSettings`.
    """
    apart = WordPanels(panels, n_regions, separate)
    n_words = apart.n_features
    if k is None or k == n_words:
        check_held(apart.nbytes_of(n_words), n_words)
        counts = apart.whole()
        table = RegionTable(n_regions, n_words, counts.sum(axis=-1), alpha)
        return WordTable(table, counts, np.arange(n_words), None)
    words, evidence = _choose(classes, panels, n_regions, alpha, k)
    table = RegionTable(n_regions, n_words, apart.totals_of_words(), alpha, words)
    return WordTable(table, apart.of_words(words), words, evidence)


def check_held(nbytes: int, n_words: int) -> None:
    """Refuse a model that is larger than what is held in memory."""
    if nbytes > MOST_COUNTS:
        raise PlanError(
            f"a table of all {n_words:,} words takes {format_bytes(nbytes)}, and at most {format_bytes(MOST_COUNTS)} "
            "are held; give k, so that the model has so many words only, or leave out rare ones"
        )


def _choose(classes: Array, panels: Panels, n_regions: int, alpha: float, k: int) -> tuple[Array, Evidence]:
    """The support of a sparse multinomial fit to the words of all regions together."""
    folded = WordPanels(panels, n_regions)
    few = folded.nbytes_of(folded.n_features) <= MOST_COUNTS
    totals = ArrayTotals(folded.whole()) if few else PanelTotals(folded, sums)
    model = fit_multinomial(Counts(classes, panels.totals["weight"], totals), Settings(k, alpha))
    if not len(model.support):
        raise InputError("no document has a word, so that there is none to choose; give documents with counts")
    return model.support, replace(model.evidence, second_dual=None)  # which is of words, not of columns


def _sum(arrays: Iterator[Array]) -> Array:
    """The sum of some arrays, one at least."""
    total: Array = next(arrays).copy()
    for array in arrays:
        total = total + array
    return total
