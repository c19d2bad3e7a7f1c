"""Lengths of documents: a histogram of bounded size."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.compiling import kernel

EXACT = 4096  # lengths below this, in whole numbers, have a bin each
STEPS = 256  # bins of each doubling above: lengths in a bin differ by less than 0.4 %
DOUBLINGS = 40
N_BINS = EXACT + DOUBLINGS * STEPS


def add_lengths(block: Block, bins: Array) -> None:
    """Count documents of a weight above 0 by the sum of their values, in place; ``bins`` (N_BINS,) int64."""
    weights = np.ones(block.n_rows) if block.weights is None else np.asarray(block.weights, np.float64)
    entries = block.entries
    _add_lengths(entries.indptr, entries.data, weights, bins)


def lengths_in(bins: Array) -> dict[float, int]:
    """The lengths that occur, and how many documents have them; long ones to 0.2 %.

    >>> bins = np.zeros(N_BINS, np.int64)
    >>> bins[[3, 12]] = 2, 1
    >>> lengths_in(bins)
    {3.0: 2, 12.0: 1}
    """
    there = np.flatnonzero(bins)
    beyond = np.maximum(there - EXACT, 0)
    octave, step = beyond // STEPS, beyond % STEPS
    middles = np.where(there < EXACT, there, np.floor(EXACT * 2.0**octave * (1 + (step + 0.5) / STEPS)))
    return dict(zip(middles.tolist(), bins[there].tolist(), strict=True))


@kernel
def _add_lengths(indptr: Array, data: Array, weights: Array, bins: Array) -> None:
    """Sums are rounded to whole numbers; those beyond all bins count in the last one."""
    for i in range(len(indptr) - 1):
        if weights[i] > 0:
            length = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                length += np.float64(data[j])
            length = np.floor(length + 0.5)
            position = max(length, 0.0)
            if length >= EXACT:
                octave = np.floor(np.log2(length / EXACT))
                step = np.floor((length / EXACT / 2.0**octave - 1) * STEPS)
                position = EXACT + octave * STEPS + min(max(step, 0.0), STEPS - 1.0)
            bins[int(min(position, N_BINS - 1.0))] += 1
