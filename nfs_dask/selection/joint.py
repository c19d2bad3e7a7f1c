"""One statistic made of several, each over its own rows and columns of the same blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind, integers_as_integers
from nfs_dask.sources.folds import Sorting
from nfs_dask.sources.views import ColumnChoice, Step
from nfs_dask.statistics.statistic import State, Statistic


@dataclass(frozen=True)
class JointMember:
    """A statistic, and the rows and columns of a block that it is of."""

    statistic: Statistic
    n_features: int  # columns of what it sees
    numbers: Array | None = None  # the blocks it is about; None: all
    rows: Sorting | None = None  # which rows of a block; None: all
    columns: ColumnChoice | None = None  # which columns of these; None: all
    steps: tuple[Step, ...] = ()  # what else becomes of a block, in turn

    def wants(self, block: Block) -> bool:
        """True for a block that it is about."""
        if self.numbers is None:
            return True
        place = int(np.searchsorted(self.numbers, block.number))
        return place < len(self.numbers) and bool(self.numbers[place] == block.number)

    def seen(self, block: Block) -> Block:
        """Return its part of a block that has its rows alone."""
        block = block if self.columns is None else self.columns.of(block)
        for step in self.steps:
            block = step(block)
        return integers_as_integers(block)


@dataclass(frozen=True, eq=False)
class Joint(Statistic):
    """Several statistics. Arrays and totals of each have names of their own; its arrays are as wide as its columns."""

    n_classes: int
    members: tuple[JointMember, ...]

    name: ClassVar[str] = "joint"

    @property
    def accepts(self) -> Kind:  # type: ignore[override]
        """Values that all of them take."""
        kinds = {member.statistic.accepts for member in self.members}
        return "signed" if kinds == {"signed"} else "real"

    @property
    def needs_distinct(self) -> bool:
        return any(member.statistic.needs_distinct for member in self.members)

    @property
    def label(self) -> str:
        """The names of the members, each once."""
        return ", ".join(Counter(member.statistic.name for member in self.members))

    def describe(self) -> dict[str, Any]:
        described = [member.statistic.describe() for member in self.members]
        return {"statistic": self.name, "n_classes": self.n_classes, "members": described}

    def zero(self) -> State:
        return _together([member.statistic.zero() for member in self.members])

    def update(self, state: State, block: Block) -> None:
        blocks: dict[Sorting | None, Block] = {None: block}
        for number, member in enumerate(self.members):
            if not member.wants(block):
                continue
            if member.rows not in blocks and member.rows is not None:
                blocks[member.rows] = member.rows.of(block)
            seen = member.seen(blocks[member.rows])
            if seen.n_rows:
                part = _part(state, number)
                member.statistic.update(part, seen)
                _put(state, number, part)

    def settle(self, state: State) -> None:
        for number, (member, part) in enumerate(zip(self.members, self.parts(state), strict=True)):
            member.statistic.settle(part)
            _put(state, number, part)

    def merge(self, left: State, right: State) -> State:
        sides = zip(self.members, self.parts(left), self.parts(right), strict=True)
        return _together([member.statistic.merge(a, b) for member, a, b in sides])

    def parts(self, state: State) -> list[State]:
        """The state of each member."""
        return [_part(state, number) for number in range(len(self.members))]

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return sum(m.statistic.array_nbytes(m.n_features, kind, weighted) for m in self.members)

    def working_nbytes(self, n_features: int) -> int:
        return sum(member.statistic.working_nbytes(member.n_features) for member in self.members)


def _together(states: list[State]) -> State:
    whole = State()
    for number, state in enumerate(states):
        _put(whole, number, state)
    return whole


def _put(whole: State, number: int, part: State) -> None:
    whole.arrays.update({f"member{number}_{name}": array for name, array in part.arrays.items()})
    whole.totals.update({f"member{number}_{name}": array for name, array in part.totals.items()})


def _part(whole: State, number: int) -> State:
    prefix = f"member{number}_"

    def own(values: Mapping[str, Array]) -> dict[str, Array]:
        return {name.removeprefix(prefix): array for name, array in values.items() if name.startswith(prefix)}

    return State(own(whole.arrays), own(whole.totals))
