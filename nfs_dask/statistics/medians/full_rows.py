"""Loops over full rows, without branches, that compile to vector instructions: most values lie outside of all bounds.

What lies inside is marked, and its positions gathered, so that only these are looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, inline="always")
def count_below(row: Any, bounds: Any, counts: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        counts[j] += np.int64((x < bounds[j]) & (x != 0.0))


@numba.njit(nogil=True, inline="always")
def count_above(row: Any, bounds: Any, counts: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        counts[j] += np.int64((x > bounds[j]) & (x != 0.0))


@numba.njit(nogil=True, inline="always")
def mark_inside(row: Any, low: Any, high: Any, marks: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        marks[j] = np.uint8((x >= low[j]) & (x <= high[j]) & (x != 0.0))


@numba.njit(nogil=True, inline="always")
def gather_marked(marks: Any, words: Any, found: Any) -> Any:
    """Positions of the marks, and how many; ``words`` are the same bytes, eight at a time."""
    n = 0
    for k in range(len(words)):
        if words[k]:
            for j in range(8 * k, 8 * k + 8):
                found[n] = j
                n += marks[j]
    return n
