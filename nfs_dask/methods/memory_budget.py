"""How much of its states the passes of medians may keep: rows of a sample, edges, values, columns at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import make_plan
from nfs_dask.solvers.medians.edges import STANDARD_ERRORS
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_blocks, some_columns
from nfs_dask.statistics.medians.cells import ClassCells
from nfs_dask.statistics.medians.sample import RowSample
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import MiB

STATE_NBYTES = 64 * MiB  # larger states bring medians closer together, but take longer to merge than that saves
LEAST_STATE = 1 * MiB
GROWTH = 24 * MiB  # of a worker, from the first pass to the last
LEAST_ROWS = 128  # of a class in a sample; with fewer the edges say little
LEAST_EDGES = 16
MOST_ROWS = 1 << 14  # of a class in a sample of some rows; more would not bring edges much closer
MOST_ALL = 1 << 24  # of a class in a sample of all rows
MOST_EDGES = 256
UNEVEN = 4.0  # how many more values than on average may be between two edges of a sample
PILOT_SHARE = 20  # one block of so many is in the pilot
PILOT_BLOCKS = 16  # or this many, where all are fewer than would be enough


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes that one state may take, and what that is enough for."""

    n_classes: int
    nbytes: int
    weighted: bool

    @classmethod
    def of(cls, n_classes: int, source: Source, resources: Resources) -> MemoryBudget:
        """The most that the plan of a pass still admits."""
        nbytes, resources = STATE_NBYTES, replace(resources, warm=resources.warm + GROWTH)
        while nbytes > LEAST_STATE:
            budget = cls(n_classes, nbytes, source.weighted)
            view = some_columns(source, np.arange(min(budget.columns, source.n_features)))
            if all(make_plan(one, view, resources).fits for one in budget._largest(view)):
                return budget
            nbytes = nbytes * 7 // 8
        return cls(n_classes, nbytes, source.weighted)

    def _largest(self, source: Source) -> Iterator[Statistic]:
        """Statistics as large as those of these columns may be; where the sample has all rows, it is the only one."""
        n_columns, (rows, pilot) = source.n_features, self.sample_of(source)
        if pilot is source:
            yield RowSample(self.n_classes, rows)
        else:
            yield RowSample(self.n_classes, self.sample_rows(n_columns))
            yield ClassCells(self.n_classes, np.zeros((self.n_classes + 1, self.edges(n_columns), n_columns)))

    @property
    def columns(self) -> int:
        """How many columns can be worked on together."""
        row = max(LEAST_ROWS * 8, (2 * LEAST_EDGES + 1) * 2 * self._count_nbytes)
        return max(1, self.nbytes // (self.n_classes * row))

    def sample_rows(self, n_columns: int) -> int:
        """Rows of each class in a sample."""
        return max(1, min(MOST_ROWS, self.nbytes // (self.n_classes * self._row_nbytes(n_columns))))

    def edges(self, n_columns: int) -> int:
        """Most edges of each target."""
        cells = self.nbytes // (2 * self.n_classes * n_columns * self._count_nbytes)
        return max(LEAST_EDGES, min(MOST_EDGES, (cells - 1) // 2))

    def sample_edges(self, source: Source) -> int:
        """Edges around the medians of a sample: as many as leave few enough values between two, or most."""
        n_columns, most = source.n_features, self.edges(source.n_features)
        if source.n_rows < 0:
            return most
        inside = STANDARD_ERRORS / math.sqrt(self.sample_rows(n_columns))  # of all rows, between the outermost edges
        enough = UNEVEN * 2 * source.n_rows * inside / self.values(n_columns)  # each row is in two views
        return max(LEAST_EDGES, min(most, math.ceil(enough)))

    def values(self, n_columns: int) -> int:
        """Values of a column that can be gathered."""
        return max(1, self.nbytes // (n_columns * (16 if self.weighted else 8)))

    def sample_of(self, source: Source, most_rows: int | None = None) -> tuple[int, Source]:
        """How many rows of each class to draw, and from what: all rows where they fit, else some of some blocks.

        ``most_rows`` are those of the largest class, where that is known; no class has more than there are rows.
        """
        most = source.n_rows if most_rows is None else most_rows
        if 0 <= most <= MOST_ALL and most * self.n_classes * self._row_nbytes(source.n_features) <= self.nbytes:
            return most, source
        return self.sample_rows(source.n_features), _pilot(source)

    def _row_nbytes(self, n_columns: int) -> int:
        """Bytes of a row in a sample, with its key and its weight."""
        return 8 * n_columns + 16

    @property
    def _count_nbytes(self) -> int:
        """Bytes of the count in one cell; of weighted rows there are their weights as well."""
        return 24 if self.weighted else 8


def _pilot(source: Source) -> Source:
    """Evenly spaced blocks, enough for a first idea of all."""
    count = min(source.n_blocks, max(PILOT_BLOCKS, source.n_blocks // PILOT_SHARE))
    return some_blocks(source, np.arange(1, 2 * count, 2, dtype=np.int64) * source.n_blocks // (2 * count))
