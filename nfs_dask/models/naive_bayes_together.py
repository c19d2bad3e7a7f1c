"""Several naive Bayes models of the same data side by side: rows are scored by all of them in one look at the entries.

What a feature adds to the models lies in one run of numbers, by model and class, those of models of many features
first. It ends with the last model that looks at the feature, so that most runs are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure
from nfs_dask.arrays.compiling import kernel
from nfs_dask.models.log_terms import LogTerms
from nfs_dask.models.together import SharedColumns, located
from nfs_dask.statistics.binary_counts import check_binary

PADDING = 2  # runs may be so many times as long as what the models have in them


@dataclass(frozen=True)
class NaiveBayesTogether:
    """Models that take values in the same way, and differ in their features and in what these are worth."""

    models: Sequence[Any]
    columns: SharedColumns
    firsts: Array  # (columns + 1,) int64, where the run of each column begins
    steps: Array  # what a unit, or the presence, of each column adds, in runs
    zeros: Array | None  # how many zeros of probability that is, in runs; None: none anywhere
    start: LogTerms  # (P, C) of empty documents, in the order of the runs

    @classmethod
    def of(cls, models: Sequence[Any]) -> NaiveBayesTogether | None:
        """None where the models have so little in common that runs would be empty for the most part."""
        first = models[0]
        if any((one.threshold, one.binary_only) != (first.threshold, first.binary_only) for one in models):
            return None
        columns = SharedColumns.of([model.support for model in models], first.n_features)
        firsts = np.concatenate(([0], np.cumsum(columns.uses)))
        if firsts[-1] > PADDING * sum(map(len, columns.places)):
            return None
        steps, zeros = np.zeros((2, firsts[-1], first.n_classes))
        copies = [replace(model) for model in models]  # what they work out for themselves goes with them
        for position, (number, places) in enumerate(zip(columns.order, columns.places, strict=True)):
            logs = copies[number].steps
            _lay_out(np.ascontiguousarray(logs.finite), places, firsts, position, steps)
            if logs.zeros.any():
                _lay_out(logs.zeros.astype(np.float64), places, firsts, position, zeros)
        starts = [copies[number].start for number in columns.order]
        start = LogTerms(np.stack([one.finite for one in starts]), np.stack([one.zeros for one in starts]))
        found = zeros.ravel() if zeros.any() else None
        return cls(models, columns, firsts * first.n_classes, steps.ravel(), found, start)

    def scores(self, block: Block) -> Array:
        check_structure(block)
        threshold = self.models[0].threshold
        if self.models[0].binary_only:
            check_binary(block)
        entries = located(block, self.columns.lookup)
        times = (entries.data if threshold is None else entries.data > threshold).astype(np.float64)
        finite = self._added(entries.indptr, entries.positions, times, self.steps, self.start.finite)
        zeros: Array = self.start.zeros
        if self.zeros is not None:
            present = (times != 0).astype(np.float64)
            zeros = self._added(entries.indptr, entries.positions, present, self.zeros, self.start.zeros)
        scores = LogTerms(finite, zeros).value if np.any(zeros) else finite
        out = self.columns.as_given(scores)
        if np.any(zeros):
            nowhere = np.isneginf(out).all(axis=2)
            out[nowhere] = np.stack([model.class_log_prior for model in self.models])[np.nonzero(nowhere)[1]]
        return out

    def _added(self, indptr: Array, positions: Array, times: Array, runs: Array, start: Array) -> Array:
        """The start and what entries add to it, (n, P, C)."""
        out = np.empty((len(indptr) - 1, start.size))
        out[:] = start.ravel()
        add_runs(indptr, positions, times, self.firsts, runs, out)
        return out.reshape(-1, *start.shape)


@kernel
def _lay_out(values, places, firsts, position, runs):
    """runs[...] = the values (C, k) of a model, at its position in the run of each of its columns."""
    for j in range(len(places)):
        row = firsts[places[j]] + position
        for c in range(len(values)):
            runs[row, c] = values[c, j]


@kernel
def add_runs(indptr, positions, times, firsts, runs, out):
    """out[row, ...] += the run of the column of each entry, so many times.

    Places in runs are told to be 0 and more: only then several numbers are added at once.
    """
    for i in range(len(indptr) - 1):
        row = out[i]
        for j in range(indptr[i], indptr[i + 1]):
            p = positions[j]
            if p >= 0:
                first, x = np.uint64(firsts[p]), np.float64(times[j])
                for s in range(np.uint64(firsts[p + 1]) - first):
                    row[s] += x * runs[first + s]
