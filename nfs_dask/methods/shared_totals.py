"""Class totals that models of many k are made of. What models of one smoothing have in common is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes import bernoulli, multinomial
from nfs_dask.solvers.naive_bayes.directory import Directory
from nfs_dask.solvers.naive_bayes.equal_columns import Cells
from nfs_dask.solvers.naive_bayes.problem import Posing
from nfs_dask.statistics.class_totals import ArrayTotals, Totals

OfColumns = Callable[[Array], tuple[Array, ...]]  # from totals (C, n) to other numbers of each column, (C, n)


class SharedTotals(ArrayTotals):
    """Totals in memory, of classes that all have documents; they remember what was made of them for a smoothing."""

    def grouped(self) -> tuple[Cells, Directory | None]:
        return self._grouped

    def of(self, classes: Array) -> SharedTotals:
        return self

    def made(self, what: Hashable, alpha: float, make: Callable[[], Any]) -> Any:
        """What was made under that name for a smoothing; of other smoothings nothing is held."""
        if self._alpha != [alpha]:
            self._alpha[:] = [alpha]
            self._made.clear()
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    @cached_property
    def _grouped(self) -> tuple[Cells, Directory | None]:
        return super().grouped()

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _alpha(self) -> list[float]:
        return []


def counted(totals: Totals, alpha: float) -> multinomial.GroupedCounts:
    """Totals as a multinomial solver takes them."""
    if not isinstance(totals, SharedTotals):
        return multinomial.GroupedCounts(*totals.grouped(), alpha)
    cells, where = totals.grouped()
    made: multinomial.GroupedCounts = totals.made(
        counted, alpha, lambda: multinomial.GroupedCounts(cells, where, alpha, Posing(cells, alpha))
    )
    return made


def scored(totals: Totals, documents: Array, alpha: float) -> bernoulli.Scored:
    """Totals as a Bernoulli solver takes them, of so many documents in each class."""
    if not isinstance(totals, SharedTotals):
        return bernoulli.score_cells(*totals.grouped(), documents, alpha)
    cells, where = totals.grouped()
    made: bernoulli.Scored = totals.made(
        scored, alpha, lambda: bernoulli.score_cells(cells, where, documents, alpha, Posing(cells, alpha))
    )
    return made


def smoothed(totals: Totals, support: Array, alpha: float, log: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Logs of the totals of some columns under smoothing, (C, k), and what these totals add up to, (C,)."""
    if not isinstance(totals, SharedTotals):
        f = totals.at(support) + alpha
        return log(f), f.sum(axis=1)
    (logs,) = mapped(totals, support, alpha, "logs", lambda f: (log(f + alpha),))
    cells, where = totals.grouped()
    table, places = totals.made(smoothed, alpha, lambda: cells.totals + alpha), _places(where, support)
    masses = np.zeros(len(table))
    _add_columns(table, places, masses)
    return logs, masses


def mapped(totals: Totals, support: Array, alpha: float, what: str, function: OfColumns) -> tuple[Array, ...]:
    """A function of the totals of some columns, each of which it takes by itself.

    Where many models share their smoothing it is worked out for distinct columns, once; ``what`` names it.
    """
    if not isinstance(totals, SharedTotals):
        return function(totals.at(support))
    cells, where = totals.grouped()
    tables, places = totals.made(what, alpha, lambda: function(cells.totals)), _places(where, support)
    return tuple(table.take(places, axis=1) for table in tables)


def _places(where: Directory | None, support: Array) -> Array:
    return support if where is None else where.cells_of(support)


@kernel
def _add_columns(table, places, out):
    """out[class] += the columns in some places, one after another as numpy adds up what `ArrayTotals.at` returns."""
    for j in range(len(places)):
        for c in range(len(out)):
            out[c] += table[c, places[j]]
