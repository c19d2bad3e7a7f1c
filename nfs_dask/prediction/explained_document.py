"""One document, what its features contribute to the decision about it, and where they stand in its texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Part(NamedTuple):
    """What one feature contributes."""

    feature: str
    value: float
    contribution: float


class Mark(NamedTuple):
    """A stretch of a text that is one occurrence of a feature."""

    part: int  # position among the parts of the document
    start: int
    stop: int


@dataclass(frozen=True)
class MarkedText:
    """A text of a document, and where its features stand in it."""

    region: str  # "" where the documents have one text
    text: str
    marks: tuple[Mark, ...] = ()
    unmarked: str | None = None  # why there are no marks, where they could not be found


@dataclass(frozen=True)
class ExplainedDocument:
    """Why a document is taken for one of two classes rather than the other.

    What features contribute is above 0 where it speaks for the first of the two ``sides``, below 0 for the other one.
    """

    document: int  # its number
    predicted: Any
    probability: float | None  # of the predicted class; None of models without probabilities
    compared: str  # what the contributions and the base add up to
    sides: tuple[str, str]
    base: float  # what contributions are added to
    parts: tuple[Part, ...]  # the largest first, whatever their sign
    texts: tuple[MarkedText, ...] = ()
    at_base: str = "without features"  # where the base is

    @property
    def telling(self) -> tuple[Part, ...]:
        """The parts that contribute anything."""
        return tuple(part for part in self.parts if part.contribution != 0)

    @property
    def by_features(self) -> float:
        """What all features contribute."""
        return math.fsum(part.contribution for part in self.parts)

    @property
    def total(self) -> float:
        return math.fsum([self.base, *(part.contribution for part in self.parts)])

    @property
    def margin(self) -> float:
        """How far the predicted class is above the other one."""
        return abs(self.total)

    def side_of(self, contribution: float) -> str:
        """The class that a contribution speaks for."""
        return "" if contribution == 0 else self.sides[contribution < 0]

    def occurrences(self) -> list[float]:
        """What each part contributes at each of its marks."""
        times = Counter(mark.part for text in self.texts for mark in text.marks)
        return [part.contribution / max(1, times[i]) for i, part in enumerate(self.parts)]


def apart(text: MarkedText, weights: Sequence[float]) -> Iterator[tuple[str, int | None]]:
    """The text in stretches that follow one another, each with the part that it is an occurrence of, or None.

    Where marks overlap, as those of n-grams do, the one that weighs more is shown, and of equal ones the longer.

    >>> text = MarkedText("", "a cup of tea", (Mark(0, 2, 5), Mark(1, 2, 12), Mark(2, 9, 12)))
    >>> list(apart(text, [0.5, -0.2, 1.0]))
    [('a ', None), ('cup', 0), (' of ', None), ('tea', 2)]
    """
    kept: list[Mark] = []
    taken = bytearray(len(text.text))
    for mark in sorted(text.marks, key=lambda m: (-abs(weights[m.part]), m.start - m.stop, m.start)):
        if mark.start < mark.stop and not any(taken[mark.start : mark.stop]):
            taken[mark.start : mark.stop] = b"\1" * (mark.stop - mark.start)
            kept.append(mark)
    end = 0
    for mark in sorted(kept, key=lambda m: m.start):
        if mark.start > end:
            yield text.text[end : mark.start], None
        yield text.text[mark.start : mark.stop], mark.part
        end = mark.stop
    if end < len(text.text):
        yield text.text[end:], None


def overlaid(text: MarkedText) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The text in stretches that follow one another, each with all parts that have a mark over it.

    >>> text = MarkedText("", "a cup of tea", (Mark(1, 2, 12), Mark(2, 9, 12)))
    >>> list(overlaid(text))
    [('a ', ()), ('cup of ', (1,)), ('tea', (1, 2))]
    """
    starts: dict[int, list[int]] = {}
    stops: dict[int, list[int]] = {}
    for mark in text.marks:
        if mark.start < mark.stop:
            starts.setdefault(mark.start, []).append(mark.part)
            stops.setdefault(mark.stop, []).append(mark.part)
    edges = sorted({0, len(text.text), *starts, *stops})
    over: Counter[int] = Counter()
    for start, stop in zip(edges, edges[1:], strict=False):
        over.subtract(stops.get(start, ()))
        over.update(starts.get(start, ()))
        yield text.text[start:stop], tuple(sorted(part for part, times in over.items() if times > 0))
