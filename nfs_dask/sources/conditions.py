"""Which rows are meant, by values of their columns.

A condition compares values by what they are as text: 5, 5.0 and "5" are the same, and so are true and True.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, did_you_mean

MOST_FOUND = 20  # values of a column that are noted beside those that were asked for


@dataclass(frozen=True)
class Condition:
    """Rows of which a column has one of some values."""

    column: str
    values: tuple[str, ...]

    def holds(self, values: Iterable[Any]) -> Array:
        """Of which rows, (n,)."""
        if _is_numbers(values):
            distinct, places = np.unique(values, return_inverse=True)
            return self.holds(distinct.tolist())[places]
        wanted = {*self.values, *(value.title() for value in self.values if value in ("true", "false"))}
        return np.fromiter((v in wanted if type(v) is str else text_of(v) in wanted for v in values), bool)

    def found(self, values: Iterable[Any]) -> tuple[str, ...]:
        """The distinct values of some rows: those that are asked for, and a few others."""
        there = {text_of(value) for value in (np.unique(values).tolist() if _is_numbers(values) else values)}
        return self.bounded(there)

    def bounded(self, there: set[str]) -> tuple[str, ...]:
        """The values that are asked for, of those that are there, and a few others."""
        return tuple(sorted(there & set(self.values)) + sorted(there - set(self.values))[:MOST_FOUND])

    def check(self, there: Sequence[str], where: str) -> None:
        """Refuse values that no row has; ``there`` are `bounded` values of all rows."""
        for value in self.values:
            if value not in there:
                others = ", ".join(map(repr, there[:MOST_FOUND])) or "no values"
                near = did_you_mean(value, there)
                raise InputError(
                    f"no row of {where} has {value!r} in the column {self.column!r}; there are {others}{near}"
                )


def _is_numbers(values: Any) -> TypeGuard[Array]:
    return isinstance(values, np.ndarray) and values.dtype.kind in "biuf"


def conditions(where: Any) -> tuple[Condition, ...]:
    """What `where` asks for: one value, or a list of values, for each of some columns."""
    if where is None:
        return ()
    if not isinstance(where, Mapping) or not where or not all(isinstance(name, str) and name for name in where):
        raise InputError(f'where={where!r}; give values by columns, as in where={{"split": "train"}}')
    return tuple(Condition(column, _texts(column, wanted)) for column, wanted in where.items())


def _texts(column: str, wanted: Any) -> tuple[str, ...]:
    several = wanted if isinstance(wanted, (list, tuple, set, frozenset, np.ndarray)) else [wanted]
    if not len(several) or not all(isinstance(one, (str, int, float, np.generic)) for one in several):
        raise InputError(f"where={{{column!r}: {wanted!r}}}; give a text, a number or a truth value, or a list of them")
    return tuple(dict.fromkeys(map(text_of, several)))


def text_of(value: Any) -> str:
    """A value as text; missing ones are empty.

    >>> text_of(5.0), text_of("5"), text_of(True), text_of("True"), text_of(None), text_of(0.5)
    ('5', '5', 'true', 'true', '', '0.5')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool)):
        text = str(value)
        return text.lower() if text in ("True", "False") else text
    if isinstance(value, float) and (math.isnan(value) or value.is_integer()):
        return "" if math.isnan(value) else str(int(value))
    return "" if value is None or type(value).__name__ in ("NAType", "NaTType") else str(value)
