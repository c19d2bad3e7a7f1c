"""Hybrid naive Bayes: word probabilities that were counted, weighed by a few parameters that were fitted.

References: HYB (Raina et al. 2003) (8), (9).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure, check_values
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import add_products
from nfs_dask.errors import InputError
from nfs_dask.models.contributions import Contributions, SelectedEntries
from nfs_dask.models.model import Model, of_others
from nfs_dask.solvers.logistic.likelihood import class_scores


@dataclass(frozen=True, kw_only=True)
class HybridModel(Model):
    """A classifier of documents with several regions, such as subject and body, that have one vocabulary.

    Columns ``r * V .. (r + 1) * V - 1`` are region r. With the words w of region r that are in the support,

        b_rc = sum of x_rw log P(w|c), divided by the sum of x_rw if normalised; 0 for a region without words
        P(c|x) proportional to exp(theta_0c + sum_r theta_r b_rc),  theta_00 = 0

    For two classes ``b_r = b_r1 - b_r0`` says the same. The support has the same words in each region. Unnormalised
    and with theta_r = 1, this is naive Bayes of the prior ``theta_0``. Classes without documents are never predicted.
    """

    theta: Array  # (C - 1 + R,) float64: theta_0 of the classes but the first, then theta_r of the regions
    log_probabilities: Array  # (C, words) float64, log P(w|c) of all regions; (C, R, words) where each has its own
    n_regions: int
    normalize: bool
    alpha: float  # smoothing that the probabilities were estimated with

    @property
    def measure(self) -> str:
        """With fewer words than there are, of the multinomial model which chose them."""
        return "log likelihood" if len(self.support) == self.n_features else "multinomial log likelihood"

    @property
    def has_probabilities(self) -> bool:
        return True

    @property
    def is_linear(self) -> bool:
        return not self.normalize

    @property
    def n_words(self) -> int:
        """Size of the vocabulary, V."""
        return self.n_features // self.n_regions

    @property
    def words(self) -> Array:
        """The selected words, ascending from 0 to V - 1."""
        return self.support[: self.log_probabilities.shape[-1]]

    @property
    def intercepts(self) -> Array:
        """theta_0 of each class, (C,); 0 for the first."""
        return np.concatenate(([0.0], self.theta[: self.n_classes - 1]))

    @property
    def slopes(self) -> Array:
        """theta_r, (R,)."""
        return self.theta[self.n_classes - 1 :]

    def scores(self, block: Block, trusted: bool = False) -> Array:
        """Logarithms of the posteriors up to a constant of the row, (n, C); of two classes the first one has 0."""
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            scores = class_scores(self.features(block, trusted), self.theta)
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            raise InputError(
                f"{block.row_in_words(int(np.argmin(finite)))}: its values add up to more than "
                "a number holds; scale the data down"
            )
        scores[:, self.class_count == 0] = -np.inf
        return scores

    def features(self, block: Block, trusted: bool = False) -> Array:
        """b_r of each row, (n, R), or for more than two classes b_rc, (n, R, C)."""
        check_structure(block)
        if block.n_features != self.n_features:
            raise InputError(f"rows of {block.n_features} columns for a model of {self.n_features}; give it those")
        if not trusted:
            check_values(block, "real")
        tables = self._tables
        out = np.zeros((block.n_rows, self.n_regions, tables.shape[-1]))
        if block.full:
            self._add_matrix(block.matrix, out)
        else:
            _add_entries(*self.lookup.take(block).entries[:3], tables, self.normalize, out)
        return out[:, :, 0] if self.n_classes == 2 else out

    def _add_matrix(self, matrix: Array, out: Array) -> None:
        """out[row, region] += what `_add_entries` finds, of a dense array."""
        for r, columns in enumerate(np.split(self.support, self.n_regions)):
            logs = self._tables[min(r, len(self._tables) - 1)].T
            steps = np.vstack([logs, np.ones(len(columns))])  # the last sum is the one of the values
            sums = np.empty((len(matrix), len(steps)))
            add_products(matrix, columns, steps, np.zeros(len(steps)), sums)
            tokens = sums[:, -1:] if self.normalize else np.ones((len(matrix), 1))
            np.divide(sums[:, :-1], tokens, out=out[:, r], where=tokens > 0)

    def contributions(self, block: Block, trusted: bool = False) -> Contributions:
        """Of each word in each region: ``theta_r x_rw log P(w|c)``, divided by the region's sum if normalised.

        The base is ``theta_0``, alike for all rows. In a normalised region a word shares its weight with the others
        that are there, so what it contributes is its share, and not what would be missing without it.
        """
        if not trusted:
            check_values(block, "real")
        entries = SelectedEntries.of(block, self.lookup, lambda data: data != 0)
        regions, words = np.divmod(entries.positions, self.log_probabilities.shape[-1])
        tables = self._tables
        logs = tables[regions if len(tables) > 1 else np.zeros_like(regions), words]
        shares = entries.values
        if self.normalize:
            places = entries.rows * self.n_regions + regions
            tokens = np.bincount(places, entries.values, minlength=entries.n_rows * self.n_regions)
            shares = entries.values / tokens[places]
        parts = (self.slopes[regions] * shares)[:, None] * logs
        start = np.where(self.class_count > 0, self.intercepts, -np.inf)
        if self.n_classes == 2:
            return Contributions(np.full(block.n_rows, start[1] - start[0]), entries, parts[:, 0])
        return Contributions(np.tile(start, (block.n_rows, 1)), entries, parts)

    def log_odds(self, scores: Array) -> Array:
        return scores

    def coefficients(self) -> tuple[Array, Array]:
        if not self.is_linear:
            raise InputError(
                "the posteriors of normalised regions are no linear functions of the counts; take predict or "
                "decision_function, or fit with normalize=False"
            )
        weights, intercepts = self._worth(), np.where(self.class_count > 0, self.intercepts, -np.inf)
        average = np.average(weights, axis=0, weights=self.class_count)
        weights[self.class_count == 0] = average
        if self.n_classes == 2:
            return weights[1:] - weights[:1], np.diff(intercepts)
        return weights - average, intercepts

    def margins(self) -> Array:
        """(C, k) how much more a word in a region adds to the score of a class than to that of others on average.

        On average over the documents of other classes; 0 where there are none. In a normalised region, if no other word
        is there: else it shares that with the others.
        """
        worth, out = self._worth()[self.seen], np.zeros((self.n_classes, len(self.support)))
        if len(worth) > 1:
            others, weights = of_others(worth, self.class_count[self.seen])
            out[self.seen] = worth - others / weights
        return out

    def _worth(self) -> Array:
        """(C, k) theta_r log P(w|c)."""
        worth: Array = self.slopes[:, None] * self._by_region
        return worth.reshape(self.n_classes, len(self.support))

    @property
    def _by_region(self) -> Array:
        """(C, 1 or R, words) the logarithms, with an axis for the tables."""
        logs = self.log_probabilities
        return logs[:, None, :] if logs.ndim == 2 else logs

    @cached_property
    def _tables(self) -> Array:
        """(tables, words, C) the logarithms, so that what an entry adds lies together.

        (tables, words, 1) for two classes, of which only the difference of the second to the first matters.
        """
        logs = self._by_region
        if self.n_classes == 2:
            logs = logs[1:] - logs[:1]
        return np.ascontiguousarray(np.moveaxis(logs, 0, -1))


@kernel
def _add_entries(indptr, columns, data, tables, normalize, out):
    """out[row, region] += value * table[word] of each entry, then divided by the sum of the values of the region.

    Columns run over the words of one region after the other.
    """
    n_tables, width, n_values = tables.shape
    n_regions = out.shape[1]
    tokens = np.empty(n_regions)
    for i in range(len(indptr) - 1):
        tokens[:] = 0.0
        region, first = 0, np.int64(0)
        for j in range(indptr[i], indptr[i + 1]):
            column = np.int64(columns[j])
            word = column - first
            if word < 0 or word >= width:  # entries of a region follow one another, so a division is rare
                region = column // width
                first = region * width
                word = column - first
            value = np.float64(data[j])
            tokens[region] += value
            table = region if n_tables > 1 else 0
            for c in range(n_values):
                out[i, region, c] += value * tables[table, word, c]
        if normalize:
            for r in range(n_regions):
                if tokens[r] > 0:
                    for c in range(n_values):
                        out[i, r, c] /= tokens[r]
