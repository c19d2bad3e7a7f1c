"""Work that is ended when its time is over. Its process imports this file, and so little else."""

import time

import pytest

from benchmarks.papers.budget import within


def some(n, then):
    """Numbers, then nothing but work, or an end, or an error."""
    yield from range(n)
    while then == "work":
        time.process_time()
    if then == "error":
        raise ValueError("wrong")


def test_what_is_over_its_budget_leaves_what_it_had_found():
    begin = time.process_time()
    assert within(1 / 60, some, 3, "work") == [0, 1, 2]
    assert time.process_time() - begin < 1  # it was not this process that worked
    assert within(1, some, 3, "end") == within(None, some, 3, "end") == [0, 1, 2]


def test_what_fails_in_a_process_of_its_own_fails_here():
    with pytest.raises(RuntimeError, match="some ended with 1"):
        within(1, some, 3, "error")
