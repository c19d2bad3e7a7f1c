"""Sorting and finding strings, against Python's own order of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.text.ordering import find, order, sort_rows, sort_strings, take
from nfs_dask.text.strings import Strings, TermCounts

# Few letters and shared beginnings, NUL and 0xFF among them, with ends all around the eight bytes compared at once.
letters = st.sampled_from([b"", b"\0", b"a", b"\xff", b"\0\0\0\0\0\0\0\0", b"abcdefg", b"abcdefgh", b"abcdefgh\0"])
awkward = st.lists(letters, max_size=5).map(b"".join)
lists = st.lists(awkward, max_size=120)


def listed(strings):
    return [strings[i] for i in range(len(strings))]


@given(lists)
def test_sorted_as_python_sorts_bytes(names):
    strings = Strings.of(names)
    places = sort_strings(strings)
    assert sorted(places.tolist()) == list(range(len(names)))
    assert [names[i] for i in places] == sorted(names)


@given(st.lists(st.text(max_size=12), max_size=60))
def test_text_is_sorted_by_its_code_points(names):
    assert [names[i] for i in sort_strings(Strings.of(names))] == sorted(names)


@pytest.mark.parametrize("make", [sorted, lambda names: sorted(names, reverse=True), lambda names: names + names])
def test_many_strings_in_awkward_orders(make):
    random = np.random.default_rng(3)
    names = make([b"common beginning " * (n % 3) + b"%d" % n for n in random.integers(0, 30_000, 20_000).tolist()])
    assert [names[i] for i in sort_strings(Strings.of(names))] == sorted(names)


def test_many_equal_long_strings():
    names = [b"x" * 1000] * 500 + [b"x" * 999] * 500
    assert [names[i] for i in sort_strings(Strings.of(names))] == sorted(names)


def test_a_part_of_other_strings_is_sorted_alone():
    strings = Strings.of([b"z", b"c", b"a", b"b", b"0"]).part(1, 4)
    assert sort_strings(strings).tolist() == [1, 2, 0]


@given(lists, st.data())
def test_taking_strings(names, data):
    positions = data.draw(st.lists(st.integers(0, len(names) - 1), max_size=20)) if names else []
    strings = take(Strings.of(names), np.array(positions, np.int64))
    assert listed(strings) == [names[i] for i in positions]
    assert strings.offsets[0] == 0


@given(lists, lists)
def test_finding_strings(names, wanted):
    haystack = sorted(set(names))
    expected = [haystack.index(name) if name in haystack else -1 for name in wanted]
    assert find(Strings.of(haystack), Strings.of(wanted)).tolist() == expected


@given(st.lists(st.dictionaries(awkward, st.integers(1, 2**31 - 1), max_size=40), max_size=8))
def test_ordering_what_was_counted(rows):
    vocabulary: dict[bytes, int] = {}
    for row in rows:
        for name in row:
            vocabulary.setdefault(name, len(vocabulary))
    indptr = np.cumsum([0] + [len(row) for row in rows])
    ids = np.array([vocabulary[name] for row in rows for name in row], np.int32)
    counts = np.array([count for row in rows for count in row.values()], np.int32)
    ordered = order(TermCounts(Strings.of(vocabulary), indptr, ids, counts, 7))
    names = listed(ordered.terms)
    assert names == sorted(vocabulary)
    assert ordered.collisions == 7
    for row, start, stop in zip(rows, indptr, indptr[1:], strict=False):
        got = [(names[i], n) for i, n in zip(ordered.ids[start:stop], ordered.counts[start:stop], strict=True)]
        assert got == sorted(row.items())
    assert ordered.counts is not counts


def test_long_rows_are_sorted():
    random = np.random.default_rng(5)
    lengths = [0, 1, 24, 25, 48, 49, 50, 3000, 2]
    indptr = np.cumsum([0, *lengths])
    ids = np.concatenate([random.permutation(2**31 - 1 - np.arange(n)) for n in lengths]).astype(np.int32)
    counts = random.integers(0, 2**31 - 1, len(ids), dtype=np.int32)
    rows = [
        dict(zip(ids[a:b].tolist(), counts[a:b].tolist(), strict=True))
        for a, b in zip(indptr, indptr[1:], strict=False)
    ]
    sort_rows(indptr, ids, counts)
    for row, a, b in zip(rows, indptr, indptr[1:], strict=False):
        assert list(zip(ids[a:b].tolist(), counts[a:b].tolist(), strict=True)) == sorted(row.items())
