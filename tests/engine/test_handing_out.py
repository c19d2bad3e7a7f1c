"""Works go out as there is room, merges as their inputs are there, and those that were refused go out again."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nfs_dask.engine.handing_out import MOST_REFUSALS, Handout, Work, WorkerTooSmall


class Promise:
    """A future of a cluster that does nothing by itself."""

    def __init__(self, work: Work, arguments: tuple[Any, ...]) -> None:
        self.work, self.arguments, self.status = work, arguments, "pending"
        self.error: Exception | None = None

    def add_done_callback(self, told: Callable[[Any], None]) -> None:
        self.told = told

    def end(self, error: Exception | None = None) -> None:
        self.status, self.error = ("finished", None) if error is None else ("error", error)
        self.told(self)

    def exception(self) -> Exception | None:
        return self.error

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.arguments


class Crew:
    slots, allowed, adaptive = 2, None, False

    def look(self, *, again: bool = False) -> None:
        pass


class Desk:
    """A handout, and what it has submitted."""

    def __init__(self, works: list[Work], slots: int = 2, each: int = 1) -> None:
        self.sent: list[Promise] = []
        self.crew: Any = Crew()
        client = SimpleNamespace(status="running")
        self.handout = Handout(client, works, self.submit, self.crew, slots, each, sends=each == 2)
        self.told = iter(self.handout)

    def submit(self, handed: list[tuple[Work, tuple[Any, ...]]], allowed: list[str] | None) -> list[Promise]:
        self.sent += [Promise(work, arguments) for work, arguments in handed]
        return self.sent[-len(handed) :]

    @property
    def names(self) -> list[Any]:
        return [promise.arguments[0] for promise in self.sent]


def leaves(n: int) -> list[Work]:
    return [Work(print, (name,)) for name in "abcdefgh"[:n]]


def in_pairs() -> list[Work]:
    """Four leaves, merged two by two."""
    return [*leaves(4), Work(print, ("ab",), (0, 1)), Work(print, ("cd",), (2, 3)), Work(print, ("abcd",), (4, 5))]


@pytest.mark.parametrize(
    ("present", "planned", "each", "out"), [(2, 1, 1, 2), (2, 2, 1, 2), (1, 1, 2, 2), (2, 3, 2, 6)]
)
def test_as_many_as_there_are_threads(present: int, planned: int, each: int, out: int) -> None:
    desk = Desk(leaves(6), planned, each)
    desk.crew.slots = present
    desk.handout._hand_out()
    assert desk.names == list("abcdef"[:out])
    desk.sent[1].end()
    assert next(desk.told)[0] == 1
    desk.sent[0].end()
    next(desk.told)
    assert len(desk.sent) == min(out + 2, 6)  # others took their places at once
    assert len(desk.handout._futures) == len(desk.sent) - 2


@pytest.mark.parametrize(("present", "adaptive"), [(1, False), (2, True)])
def test_what_is_to_grow_gets_all_at_once(present: int, adaptive: bool) -> None:
    desk = Desk(leaves(6))
    desk.crew.slots, desk.crew.adaptive = present, adaptive
    desk.handout._hand_out()
    assert desk.names == list("abcdef")


def test_all_are_told_once_and_then_forgotten() -> None:
    desk = Desk(leaves(5))
    done = []
    desk.handout._hand_out()
    for i in range(5):
        desk.sent[i].end()
        done.append(next(desk.told)[0])
    assert done == [0, 1, 2, 3, 4]
    assert next(desk.told, None) is None
    assert not desk.handout._futures


def test_merges_go_before_further_leaves_and_inputs_are_let_go() -> None:
    desk = Desk(in_pairs())
    desk.handout._hand_out()
    for name in ("a", "b"):
        desk.sent[desk.names.index(name)].end()
        next(desk.told)
    desk.sent[2].end()  # c went out when a was done
    next(desk.told)
    assert desk.names[:4] == ["a", "b", "c", "ab"]
    merge = desk.sent[3]
    assert merge.arguments == ("ab", [desk.sent[0], desk.sent[1]])
    merge.end()
    next(desk.told)
    assert desk.sent[0] not in desk.handout._futures.values()


def test_what_was_refused_goes_out_again() -> None:
    desk = Desk(leaves(2))
    desk.handout._hand_out()
    desk.sent[0].end(WorkerTooSmall("small"))
    desk.sent[1].end()
    assert next(desk.told)[0] == 1
    assert desk.names == ["a", "b", "a"]
    desk.sent[2].end()
    assert next(desk.told)[0] == 0


def test_inputs_that_were_lost_to_a_small_worker_are_made_again() -> None:
    """Dask makes what a dead worker held anew, on whatever worker; if that refuses, the merge fails with it."""
    desk = Desk([*leaves(2), Work(print, ("ab",), (0, 1))])
    desk.handout._hand_out()
    for promise in list(desk.sent):
        promise.end()
        next(desk.told)
    a, _, merge = desk.sent
    a.status = "error"
    merge.end(WorkerTooSmall("small"))
    desk.handout._hand_out()
    number, future = desk.handout._arrival()
    assert future is merge
    desk.handout._repeat(number)
    assert desk.names == ["a", "b", "ab", "a"]
    for again in (3, 4):  # a, and then the merge of both
        desk.sent[again].end()
        next(desk.told)
    assert desk.names[4] == "ab"
    assert next(desk.told, None) is None


def test_other_errors_end_it() -> None:
    desk = Desk(leaves(3))
    desk.handout._hand_out()
    desk.sent[0].end(OSError("the disk is full"))
    with pytest.raises(OSError, match="full"):
        next(desk.told)


def test_what_all_refuse_is_an_error_in_the_end() -> None:
    desk = Desk(leaves(1))
    desk.handout._hand_out()
    for _ in range(MOST_REFUSALS):
        desk.sent[-1].end(WorkerTooSmall("small"))
        number, future = desk.handout._arrival()
        assert desk.handout._was_refused(number, future)
        desk.handout._repeat(number)
    desk.sent[-1].end(WorkerTooSmall("all are small"))
    with pytest.raises(WorkerTooSmall, match="all are"):
        next(desk.told)


def test_nobody_is_left_who_has_room() -> None:
    desk = Desk(leaves(2))
    desk.crew.allowed = []
    desk.handout._hand_out()
    assert not desk.sent


def test_arguments_are_made_when_it_is_their_turn() -> None:
    made = []

    def argument(name: str) -> tuple[Any, ...]:
        made.append(name)
        return (name,)

    works = [Work(print, lambda name=name: argument(name)) for name in "abc"]  # type: ignore[misc]
    desk = Desk(works)
    desk.handout._hand_out()
    assert made == ["a", "b"]
    desk.sent[0].end(WorkerTooSmall("small"))
    desk.sent[1].end()
    next(desk.told)
    assert made == ["a", "b", "c"]  # what was sent is sent again, and not made anew
