"""Merging sorted runs, against Python's sets of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.text.sorted_runs import merge_runs
from nfs_dask.text.strings import Strings

# Few letters and shared beginnings, NUL and 0xFF among them, with ends all around the eight bytes compared at once.
letters = st.sampled_from([b"", b"\0", b"a", b"\xff", b"\0\0\0\0\0\0\0\0", b"abcdefg", b"abcdefgh", b"abcdefgh\0"])
awkward = st.lists(letters, max_size=5).map(b"".join)


def check(runs):
    """Every string gets the number of its like, and distinct ones come ascending."""
    runs = [sorted(run) for run in runs]
    names = [name for run in runs for name in run]
    numbers, places = merge_runs(Strings.of(names), np.cumsum([0, *map(len, runs)]))
    distinct = sorted(set(names))
    assert numbers.dtype == np.int32
    assert [names[i] for i in places] == distinct
    assert [distinct[number] for number in numbers] == names


@given(st.lists(st.sets(awkward, max_size=30), max_size=9))
def test_merged_as_python_sorts_bytes(runs):
    check(runs)


@given(st.lists(st.sets(st.text(max_size=6).map(str.encode), max_size=30), max_size=5))
def test_texts_are_merged_in_the_order_of_their_code_points(runs):
    check(runs)


@pytest.mark.parametrize("n_runs", [1, 2, 3, 16, 17])
def test_many_strings_that_share_much(n_runs):
    random = np.random.default_rng(n_runs)
    words = [b"common beginning " * (n % 3) + b"%d" % n for n in range(3000)]
    check([{words[i] for i in random.integers(0, 3000, 2000)} for _ in range(n_runs)])


def test_runs_of_nothing_and_nothing_at_all():
    check([])
    check([set(), set()])
    check([set(), {b"b", b"a"}, set(), {b""}])


def test_runs_may_begin_anywhere_in_their_text():
    strings = Strings.of([b"z", b"b", b"c", b"a", b"c", b"0"]).part(1, 5)
    numbers, places = merge_runs(strings, np.array([0, 2, 4]))
    assert numbers.tolist() == [1, 2, 0, 2]
    assert [strings[i] for i in places] == [b"a", b"b", b"c"]
