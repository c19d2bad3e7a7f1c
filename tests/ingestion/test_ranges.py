"""Samples of sorted terms, and ranges read by them, against searches of all terms."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.files.arrayfile import ArrayFile, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion import ranges
from nfs_dask.ingestion.ranges import TERM_NBYTES, read_range, sample_terms
from nfs_dask.text.strings import Strings

letters = st.text(st.sampled_from("abcé\0😀"), max_size=6)
sorted_terms = st.sets(letters, max_size=80).map(lambda terms: sorted(term.encode() for term in terms))


def listed(strings: Strings) -> list[bytes]:
    return [strings[i] for i in range(len(strings))]


def in_a_buffer(terms: list[bytes]) -> Strings:
    """The terms, with others before and behind them."""
    return Strings.of([b"before", *terms, b"behind"]).part(1, len(terms) + 1)


@given(sorted_terms)
def test_samples_are_evenly_spread_places_between_terms(terms: list[bytes]) -> None:
    costs = list(accumulate((len(term) + TERM_NBYTES for term in terms), initial=0))
    step = max(1, costs[-1] // ranges.FEWEST)
    expected = sorted({bisect_left(costs, wanted) for wanted in range(step, costs[-1], step)} - {0, len(terms)})
    found = sample_terms(in_a_buffer(terms))
    assert [sample.position for sample in found] == expected
    assert [sample.nbytes for sample in found] == [costs[position] for position in expected]
    for sample in found:
        before, first = terms[sample.position - 1], terms[sample.position]
        assert before < sample.bound <= first
        assert first.startswith(sample.bound)
        assert sample.bound[:-1] <= before, "a shorter one would do"


@given(sorted_terms, st.integers(2, 5))
def test_samples_are_never_within_a_group(terms: list[bytes], size: int) -> None:
    groups = np.arange(len(terms)) // size
    positions = [sample.position for sample in sample_terms(in_a_buffer(terms), groups)]
    assert all(position % size == 0 for position in positions)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(str(tmp_path_factory.mktemp("ranges")))


@given(sorted_terms, letters, st.none() | letters)
def test_a_range_has_the_terms_that_a_comparison_of_all_finds(
    folder: Folder, terms: list[bytes], low: str, high: str | None
) -> None:
    lowest, highest = low.encode(), None if high is None else max(low, high).encode()
    strings = Strings.of(terms)
    facts = {"samples": [sample.to_json() for sample in sample_terms(strings)]}
    write_arrays(folder, "terms", {"offsets": strings.offsets, "text": strings.text}, facts)
    first, found = read_range(ArrayFile.open(folder, "terms"), lowest, highest)
    within = [term for term in terms if term >= lowest and (highest is None or term < highest)]
    assert listed(found) == within
    assert first == sum(term < lowest for term in terms)
