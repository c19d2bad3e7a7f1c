"""Regular expressions that may take for ever: those that can repeat themselves over the same text in several ways."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from itertools import chain, combinations
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array

MOST_PLACES = 64  # single characters in a pattern, which are compared with each other
MOST_FORKS = 10  # of them that may be followed in several ways once, which multiply


@cache
def may_take_for_ever(pattern: str) -> bool:
    r"""Whether backtracking over a text of n characters may take more than a multiple of n steps from where it starts.

    It may where a character that is repeated can be followed by two places of the pattern that match the same
    character, both of which lead back to it (2^n steps) or one to another repetition of such characters (n^2 steps).

    >>> [may_take_for_ever(p) for p in (r"(?:a+)+b", r"\w*\w*z", r"(?:a|a)*c", r"\w+(?:[-']\w+)*", r"[a-z]+s\b")]
    [True, True, True, False, False]
    """
    try:
        return _forks(_Places(pattern))
    except (RecursionError, OverflowError):
        return True


class _Places:
    """The single characters of a pattern, and which of them may follow which."""

    def __init__(self, pattern: str) -> None:
        parsed = _parser.parse(pattern)
        self.state, self.flags = parsed.state, 0
        self.items: list[Any] = []
        self.following: list[list[int]] = []  # as often as there are ways to get there, up to 2
        self._sequence(parsed)

    def _sequence(self, items: Any) -> tuple[int, list[int], list[int]]:
        """In how many ways it can be empty, up to 2, and the places it may begin and end with."""
        empty, first, last = 1, list[int](), list[int]()
        for op, given in items:
            own_empty, own_first, own_last = self._item(op, given)
            self._follow(last, own_first)
            first = _twice_at_most(first + own_first * empty)
            last = _twice_at_most(last * own_empty + own_last)
            empty = min(2, empty * own_empty)
        return empty, first, last

    def _follow(self, last: list[int], first: list[int]) -> None:
        for place in last:
            self.following[place] = _twice_at_most(self.following[place] + first)

    def _item(self, op: Any, given: Any) -> tuple[int, list[int], list[int]]:
        if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            least, most, body = given
            empty, first, last = self._sequence(body)
            if most > 1:
                self._follow(last, first)
            return min(2, empty + (least == 0)), first, last
        if op is _constants.BRANCH:
            n, begins, ends = zip(*map(self._sequence, given[1]), strict=True)
            return min(2, sum(n)), [*chain(*begins)], [*chain(*ends)]
        if op is _constants.SUBPATTERN:
            self.flags |= given[1]  # as if they were for all of the pattern
            return self._sequence(given[-1])
        if op is _constants.ATOMIC_GROUP:
            return self._sequence(given)
        if op in (_constants.ASSERT, _constants.ASSERT_NOT):
            self._sequence(given[1])
        if op in (_constants.ASSERT, _constants.ASSERT_NOT, _constants.AT):
            return 1, [], []
        if len(self.items) == MOST_PLACES:
            raise OverflowError
        known = op in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY)
        self.items.append((op, given) if known else (_constants.NOT_LITERAL, sys.maxunicode))  # what is referred to
        self.following.append([])
        place = len(self.items) - 1
        return 0, [place], [place]

    def characters(self, place: int) -> Array:
        """Which characters, by their numbers, are matched at a place."""
        item = _parser.SubPattern(self.state, [self.items[place]])
        runs = _parser.SubPattern(self.state, [(_constants.MAX_REPEAT, (1, _constants.MAXREPEAT, item))])
        out = np.zeros(sys.maxunicode + 1, bool)
        for found in _compiler.compile(runs, self.flags).finditer(_every_character()):
            out[found.start() : found.end()] = True
        return out


@cache
def _every_character() -> str:
    return "".join(map(chr, range(sys.maxunicode + 1)))


def _twice_at_most(places: list[int]) -> list[int]:
    return [place for place, n in Counter(places).items() for _ in range(min(n, 2))]


def _forks(places: _Places) -> bool:
    """Whether ways that match the same characters part within a loop, or often."""
    characters = cache(places.characters)

    @cache
    def alike(one: int, other: int) -> bool:
        same = places.items[one] == places.items[other]
        return same or bool((characters(one) & characters(other)).any())

    reached = [set(ends) for ends in places.following]
    for middle in range(len(reached)):
        for ends in (ends for ends in reached if middle in ends):
            ends.update(reached[middle])
    forks = set()
    for place, ends in enumerate(reached):
        loop = [i for i in ends if place in reached[i]]
        for pair in combinations(places.following[place], 2):
            if not alike(*pair):
                continue
            outside = [i for i in pair if i not in loop]
            others = {j for i in outside for j in (i, *reached[i]) if j in reached[j]}
            if not outside or (len(outside) == 1 and any(alike(i, other) for i in loop for other in others)):
                return True
            forks.add(place)
    return len(forks) > MOST_FORKS
