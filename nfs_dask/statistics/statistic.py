"""Statistics: frozen descriptions that fold blocks into states and merge states.

The description and the data are two types. The description is small, hashable and names everything that changes the
numbers, so it makes cache keys, checkpoints and messages easy; a `State` is arrays.

Laws, checked for every statistic by `nfs_dask.testing.check_statistic`: ``zero`` is neutral; ``merge`` is associative
and commutative; any split of the rows gives the whole, to the bit for integers; permuting rows changes nothing;
``update`` keeps no view of the block; a settled state takes further blocks; what ``merge`` returns shares nothing with
its arguments; a state's size does not depend on rows; arrays round-trip; a statistic fed panel by panel equals one fed
whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.packing import packed, unpacked
from nfs_dask.arrays.tiles import TiledEntries
from nfs_dask.errors import NfsDaskError


@dataclass
class State:
    """The result of folding blocks so far, over some range of columns.

    ``arrays`` have the columns as their last axis and appear when first needed; ``totals`` do not depend on columns.
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    totals: dict[str, Array] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.arrays.values(), *self.totals.values()))

    def __getstate__(self) -> dict[str, Any]:
        """Pack arrays for other processes: links and the memory of both ends are most of the time of merging."""
        return {"arrays": {name: packed(array) for name, array in self.arrays.items()}, "totals": self.totals}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.arrays = {name: unpacked(array) for name, array in state["arrays"].items()}
        self.totals = state["totals"]


def added(left: Mapping[str, Array], right: Mapping[str, Array]) -> dict[str, Array]:
    """Sum of arrays by name, in memory of its own; a name only one side has counts as zero on the other."""
    out = {name: array + right[name] if name in right else array.copy() for name, array in left.items()}
    out.update({name: array.copy() for name, array in right.items() if name not in left})
    return out


class Statistic(ABC):
    """A reduction over blocks. Subclasses are frozen dataclasses whose fields are JSON values."""

    name: ClassVar[str]
    entrywise: ClassVar[bool] = False  # whether it is an `EntrywiseStatistic`
    accepts: ClassVar[Kind]  # "signed" takes any finite value, "real" none below zero
    n_classes: int

    @property
    def needs_distinct(self) -> bool:
        """True if each column has to be in a row at most once."""
        return True

    @abstractmethod
    def zero(self) -> State:
        """The state of no rows at all."""

    @abstractmethod
    def update(self, state: State, block: Block) -> None:
        """Add a block to a state that the caller made itself."""

    def settle(self, state: State) -> None:  # noqa: B027 - most have nothing to do
        """Give a state that blocks were added to its lasting form, in place: before it is merged, compared or used."""

    @abstractmethod
    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        """Most bytes the arrays take for that many columns."""

    def working_nbytes(self, n_features: int) -> int:
        """Bytes that a task holds beside the arrays while it adds blocks of that many columns."""
        return 0

    def merge(self, left: State, right: State) -> State:
        """A new state over the rows of both, left before right. Neither is changed."""
        return State(added(left.arrays, right.arrays), added(left.totals, right.totals))

    def supersets(self) -> tuple[Statistic, ...]:
        """Other descriptions whose state holds all that this one's would."""
        return ()

    def small(self) -> Statistic | None:
        """The like of this for two classes and four columns, with which workers warm up; None: any other will do."""
        return None

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as JSON: the identity of the statistic in keys, checkpoints and messages."""
        return {"statistic": self.name, **{f.name: getattr(self, f.name) for f in fields(self)}}  # type: ignore[arg-type]

    def in_short(self) -> dict[str, Any]:
        """Shorten `describe` for plans: without values that take long to compute and say nothing to people."""
        return self.describe()


class EntrywiseStatistic(Statistic):
    """One whose arrays depend on each entry's column, class, value and row weight, and nothing else.

    It can be cut along the columns, and be fed panel by panel.
    """

    entrywise: ClassVar[bool] = True

    @abstractmethod
    def update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        """Add the entries of a block, in place; the block's columns are those of the arrays."""

    def update_tiles(self, arrays: dict[str, Array], entries: TiledEntries) -> None:
        """Add sorted entries, in place; their columns are those of the arrays. What holds numbers may be narrower."""
        for block in entries.blocks():
            self.update_arrays(arrays, block)

    @abstractmethod
    def update_totals(self, totals: dict[str, Array], block: Block) -> None:
        """Add what does not depend on columns, in place; called once for each block, whatever the panels."""

    def update(self, state: State, block: Block) -> None:
        self.update_totals(state.totals, block)
        self.update_arrays(state.arrays, block)


@dataclass(frozen=True)
class Coverage:
    """The blocks that a state holds: sorted, disjoint, half-open ranges of block numbers."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, start: int, stop: int) -> Coverage:
        return cls(((start, stop),) if stop > start else ())

    @property
    def count(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    def union(self, other: Coverage) -> Coverage:
        """Both together; a block in both is an error, because its documents would count twice."""
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(self.ranges + other.ranges):
            if merged and start < merged[-1][1]:
                raise NfsDaskError(f"block {start} would be counted twice; states that overlap cannot be merged")
            if merged and start == merged[-1][1]:
                merged[-1] = (merged[-1][0], stop)
            else:
                merged.append((start, stop))
        return Coverage(tuple(merged))

    def missing(self, n_blocks: int) -> list[int]:
        """The first few blocks below ``n_blocks`` that are not covered."""
        covered = 0
        gaps: list[int] = []
        for start, stop in (*self.ranges, (n_blocks, n_blocks)):
            gaps.extend(range(covered, min(start, covered + 5)))
            covered = stop
        return gaps[:5]


def array_of(arrays: dict[str, Array], name: str, n_classes: int, n_features: int, dtype: str) -> Array:
    """The named (C, columns) array of a state, of zeros when it is first needed; widened where it is narrower."""
    if name not in arrays:
        arrays[name] = np.zeros((n_classes, n_features), dtype)
    elif arrays[name].dtype != dtype:
        arrays[name] = arrays[name].astype(dtype)
    return arrays[name]
