"""What plans may count on where workers differ in memory and threads."""

from __future__ import annotations

from typing import Any

import pytest

from nfs_dask.cluster.resources import Resources, name_of, resources_of, some_names
from nfs_dask.units import GiB, MiB


def workers(*sizes: tuple[int, int]) -> dict[str, dict[str, Any]]:
    """Of memory limits and threads."""
    return {f"tcp://w:{i}": {"name": i, "memory_limit": m, "nthreads": t} for i, (m, t) in enumerate(sizes)}


def resources(*sizes: tuple[int, int], planned: int | None = None) -> Resources:
    return resources_of(workers(*sizes), planned or len(sizes), 200 * MiB, "/spool")


def test_like_workers_are_one_kind() -> None:
    made = resources(*[(2 * GiB, 2)] * 3)
    assert made == Resources(3, 2, 2 * GiB, 200 * MiB, "/spool", remote=True)
    assert list(made.choices()) == [made]
    nearly = resources((2 * GiB, 2), (2 * GiB - 5 * MiB, 2), (2 * GiB + MiB, 2))
    assert nearly.memory_limit == 2 * GiB - 5 * MiB
    assert len(list(nearly.choices())) == 1


def test_the_smallest_counts_or_is_left_out_by_name() -> None:
    every, without = resources(*[(8 * GiB, 1)] * 4, (512 * MiB, 1), *[(8 * GiB, 1)] * 5).choices()
    assert (every.workers, every.memory_limit, every.left_out) == (10, 512 * MiB, ())
    assert (without.workers, without.memory_limit) == (9, 8 * GiB)
    assert without.left_out == ("4 (tcp://w:4, 512.0 MiB)",)
    assert every.without_smallest is None


def test_of_three_kinds_the_two_smaller_may_be_left_out() -> None:
    limits = [choice.memory_limit for choice in resources((GiB, 1), (4 * GiB, 1), (2 * GiB, 1), (GiB, 1)).choices()]
    assert limits == [GiB, 2 * GiB, 4 * GiB]


def test_many_threads_make_a_worker_small() -> None:
    every, *_ = resources((8 * GiB, 16), (4 * GiB, 1), (4 * GiB, 1)).choices()
    assert (every.threads, every.memory_limit, every.slots) == (16, 8 * GiB, 18)
    assert every.task_budget < GiB


def test_workers_without_a_limit_are_the_largest() -> None:
    every, without = resources((0, 1), (2 * GiB, 1)).choices()
    assert (every.memory_limit, without.memory_limit) == (2 * GiB, 0)
    assert resources((0, 4), (0, 2)).slots == 6


@pytest.mark.parametrize(("planned", "numbers"), [(10, [10, 9]), (2, [2, 2]), (3, [3, 2]), (1, [1, 1])])
def test_planned_for_more_or_fewer_than_there_are(planned: int, numbers: list[int]) -> None:
    made = resources((2 * GiB, 1), (GiB, 1), (2 * GiB, 1), planned=planned)
    assert [choice.workers for choice in made.choices()] == numbers


def test_names() -> None:
    one = {"name": "tcp://w:1", "memory_limit": GiB}
    assert name_of("tcp://w:1", one) == "tcp://w:1 (1.0 GiB)"
    assert some_names([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 other(s)"
    assert some_names(["a"]) == "a"


def test_what_older_versions_wrote_can_be_read() -> None:
    old = {"workers": 3, "threads": 2, "memory_limit": GiB, "warm": MiB, "spool": None, "remote": True}
    assert Resources.from_json(old) == Resources(3, 2, GiB, MiB, None, True)
