import time

import pytest

from benchmarks.peers.apart import Limits, heard
from tests.helpers import answering

LIMITS = Limits(seconds=30, nbytes=1 << 30)


def test_answers_are_heard_in_their_order():
    found = heard(answering.squares, (4,), LIMITS)
    assert [answer.value for answer in found.answers] == [0, 1, 4, 9] and found.ended is None
    times = [answer.seconds for answer in found.answers]
    assert times == sorted(times) and all(answer.nbytes > 1 << 20 for answer in found.answers)


def test_what_takes_too_long_is_ended_and_what_it_said_before_is_kept():
    found = heard(answering.one_then_busy, (), Limits(seconds=0.3, nbytes=1 << 30))
    assert [answer.value for answer in found.answers] == ["first"] and found.ended == "more than 0.3 s"


def test_what_holds_too_much_is_ended():
    found = heard(answering.greedy, (200 << 20,), Limits(seconds=60, nbytes=150 << 20))
    assert found.ended == "more than 150.0 MiB"


def test_processes_that_it_started_count():
    (answer,) = heard(answering.with_a_child, (100 << 20,), LIMITS).answers
    assert answer.value == 100 << 20 and answer.nbytes > 110 << 20


def test_what_others_kill_is_noticed_at_once():
    begun = time.perf_counter()
    found = heard(answering.killed, (), LIMITS)
    assert [answer.value for answer in found.answers] == [1] and found.ended == "it was ended by something else"
    assert time.perf_counter() - begun < LIMITS.seconds


def test_what_fails_is_told_and_what_is_wrong_is_raised():
    found = heard(answering.failing, (), LIMITS)
    assert [answer.value for answer in found.answers] == [1] and found.ended == "ValueError: no more"
    with pytest.raises(AssertionError, match="counts differ"):
        heard(answering.wrong, (), LIMITS)
