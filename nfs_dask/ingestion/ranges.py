"""Ranges of sorted terms: samples that say where a file would be cut, and the terms of a range read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.text.ordering import lower_bound
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
    costs = terms.offsets - terms.offsets[0] + TERM_NBYTES * np.arange(len(terms) + 1)
    step = max(1, min(SAMPLE_NBYTES, int(costs[-1]) // FEWEST))
    positions = np.searchsorted(costs, np.arange(step, int(costs[-1]), step))
    if groups is not None:
        positions = np.searchsorted(groups, groups[np.minimum(positions, len(groups) - 1)])
    positions = np.unique(positions)
    found = []
    for position in positions[(positions > 0) & (positions < len(terms))].tolist():
        bound = _between(terms[position - 1], terms[position])
        if len(bound) <= _LONGEST:
            found.append(Sample(position, int(costs[position]), bound))
    return found


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
    samples = [Sample.from_json(found) for found in file.facts["samples"]]
    n_terms = file.length("offsets") - 1
    start = max((sample.position for sample in samples if sample.bound <= low), default=0)
    stop = n_terms if high is None else min((s.position for s in samples if s.bound >= high), default=n_terms)
    if not 0 <= start <= stop <= n_terms:
        raise file.damaged()
    terms = read_strings(file, start, stop)
    first = lower_bound(terms, low)
    last = len(terms) if high is None else lower_bound(terms, high)
    return start + first, terms.part(first, last)
