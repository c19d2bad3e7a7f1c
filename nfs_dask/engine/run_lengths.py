"""How long runs are: long ones first and short ones last, so that one slow worker does not hold a pass.

Workers take runs in their order, each the next one when it is free. A run is never longer than what is left divided by
the slots and by `SLOWER`: a worker that is so many times slower than the others, and takes it, is done when they are.
This is guided self-scheduling (Polychronopoulos and Kuck, 1987), with shorter chunks. The lengths follow from numbers
that are known before the pass, so a plan is the same value wherever its runs go.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from nfs_dask.arrays.block import Array

SLOWER = 4  # times that a worker may be slower than the others and not hold a pass
RUNS_PER_SLOT = 12  # runs beyond these gain little: the shortest ones are some 4 % of what a slot does


def run_bounds(n_blocks: int, slots: int, per_slot: float, least: float) -> tuple[tuple[int, int], ...]:
    """Ranges of blocks in their order: about ``per_slot`` for each slot, none of many fewer than ``least`` blocks.

    One for each slot where there is not enough for more; equal ones where they are few.
    """
    least = max(1.0, least, n_blocks / (slots * _finest(per_slot)))
    lengths, left = [], n_blocks
    while left > SLOWER * slots * least:
        lengths.append(left // (SLOWER * slots))
        left -= lengths[-1]
    count = min(left, slots * max(1, round(left / (least * slots))))
    length, longer = divmod(left, count)
    lengths += [length + 1] * longer + [length] * (count - longer)
    lengths.sort(reverse=True)  # they are, but for rounding
    return tuple(itertools.pairwise(itertools.accumulate(lengths, initial=0)))


def balanced(runs: tuple[tuple[int, int], ...], sizes: Array) -> tuple[tuple[int, int], ...]:
    """As many runs, each with the share of the rows that it had of the blocks, as near as blocks can be cut.

    Blocks end where files do, too, so that some are much smaller than others. Among many that evens out.
    """
    n_blocks, n_runs = len(sizes), len(runs)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    wanted = np.array([start for start, _ in runs]) / n_blocks * ends[-1]
    after = np.searchsorted(ends, wanted)
    nearest = after - (2 * wanted < ends[after] + ends[np.maximum(after - 1, 0)])
    order = np.arange(n_runs)  # a run has a block at least, and those after it, too
    starts = np.minimum(np.maximum.accumulate(nearest - order) + order, n_blocks - n_runs + order)
    return tuple(itertools.pairwise([*np.maximum(starts, order).tolist(), n_blocks]))


def _finest(per_slot: float) -> float:
    """How many times the shortest of so many runs goes into what a slot does."""
    return per_slot if per_slot <= SLOWER else SLOWER * math.exp(per_slot / SLOWER - 1)
