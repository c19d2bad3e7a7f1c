"""Ranges of sorted terms: samples that say where a file would be cut, and the terms of a range read from it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.text.strings import Strings

TERM_NBYTES = 32  # what a term takes in a merge beside its bytes: offset, two counts, and its share of a map
SAMPLE_NBYTES = 64 << 10  # of terms between two samples
FEWEST = 16  # samples of a file, however small it is, as there may be many small ones
MOST_KEPT = 256  # samples of a file that the driver keeps

_LONGEST = 256  # bytes of a sample; terms that agree further are no place to cut


@dataclass(frozen=True, slots=True)
class Sample:
    """A place where sorted terms can be cut: those before ``position`` are less than ``bound``, the others are not."""

    position: int
    nbytes: int  # that the terms before it take in a merge
    bound: bytes  # as short as can be

    def to_json(self) -> list[Any]:
        return [self.position, self.nbytes, self.bound.decode("latin-1")]

    @classmethod
    def from_json(cls, found: list[Any]) -> Sample:
        return cls(found[0], found[1], found[2].encode("latin-1"))


def terms_nbytes(terms: Strings) -> int:
    """What terms take where they are merged."""
    return int(terms.offsets[-1] - terms.offsets[0]) + TERM_NBYTES * len(terms)


def sample_terms(terms: Strings, groups: Array | None = None) -> list[Sample]:
    """Samples about every 64 KiB of sorted terms; never within a group, where terms have ascending groups."""
    total = terms_nbytes(terms)
    step = max(1, min(SAMPLE_NBYTES, total // FEWEST))
    positions = _positions_of(terms, np.arange(step, total, step))
    if groups is not None:
        positions = np.searchsorted(groups, groups[np.minimum(positions, len(groups) - 1)])
    positions = np.unique(positions)
    positions = positions[(positions > 0) & (positions < len(terms))]
    costs, edges = _costs(terms, positions).tolist(), terms.offsets[positions + np.array([[-1], [0], [1]])].tolist()
    found = []
    for position, cost, start, middle, stop in zip(positions.tolist(), costs, *edges, strict=True):
        bound = _between(terms.text[start:middle].tobytes(), terms.text[middle:stop].tobytes())
        if len(bound) <= _LONGEST:
            found.append(Sample(position, cost, bound))
    return found


def _costs(terms: Strings, positions: Array) -> Array:
    """What the terms before some positions take in a merge."""
    return terms.offsets[positions] - terms.offsets[0] + TERM_NBYTES * positions


def _positions_of(terms: Strings, costs: Array) -> Array:
    """The first positions that the terms before take so much: by halves, for the few that are asked for of many."""
    low, high = np.zeros(len(costs), np.int64), np.full(len(costs), len(terms), np.int64)
    for _ in range(len(terms).bit_length()):
        middle = (low + high) >> 1
        less = _costs(terms, middle) < costs
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    return low


def _between(low: bytes, high: bytes) -> bytes:
    """The shortest beginning of ``high`` that is greater than ``low``, which is less than ``high``."""
    same = 0
    while same < len(low) and low[same] == high[same]:
        same += 1
    return high[: same + 1]


def thinned(samples: list[Sample]) -> tuple[Sample, ...]:
    """A few of many samples, evenly."""
    n = len(samples)
    return tuple(samples) if n <= MOST_KEPT else tuple(samples[n * i // MOST_KEPT] for i in range(MOST_KEPT))


def read_strings(file: ArrayFile, start: int, stop: int, key: str = "") -> Strings:
    """Strings ``start .. stop - 1`` of the arrays ``offsets`` and ``text``, whose names begin with ``key``."""
    offsets = file.read(f"{key}offsets", start, stop + 1).astype(np.int64)
    if offsets[0] < 0 or offsets[-1] > file.length(f"{key}text") or np.any(offsets[1:] < offsets[:-1]):
        raise file.damaged()
    first, last = int(offsets[0]), int(offsets[-1])
    offsets -= first
    return Strings(offsets, file.read(f"{key}text", first, last))


def read_range(file: ArrayFile, low: bytes, high: bytes | None) -> tuple[int, Strings]:
    """The sorted terms of a file from ``low`` to before ``high``, and the position of the first.

    The samples say between which terms each end lies, so that little more than the range is read.
    """
    n_terms = file.length("offsets") - 1
    start, stop = _around(file.facts["samples"], low, high, n_terms)
    if not 0 <= start <= stop <= n_terms:
        raise file.damaged()
    terms = read_strings(file, start, stop)
    first = bisect_left(terms, low)
    last = len(terms) if high is None else bisect_left(terms, high)
    return start + first, terms.part(first, last)


def _around(samples: list[list[Any]], low: bytes, high: bytes | None, n_terms: int) -> tuple[int, int]:
    """Positions between which the terms from ``low`` to before ``high`` are, by samples as JSON has them.

    These are ascending, and so are their bounds as text: a few are looked at, and no others made into anything.
    """
    before = bisect_right(samples, low.decode("latin-1"), key=_bound)
    start = samples[before - 1][0] if before else 0
    after = len(samples) if high is None else bisect_left(samples, high.decode("latin-1"), key=_bound)
    return start, samples[after][0] if after < len(samples) else n_terms


def _bound(sample: list[Any]) -> str:
    bound: str = sample[2]
    return bound
