"""Naive Bayes over a few features: sums of logarithms of probabilities.

References: NFS (1), (3), (6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure, check_values, distinct
from nfs_dask.arrays.kernels import add_products
from nfs_dask.models.contributions import Contributions, SelectedEntries
from nfs_dask.models.log_terms import LogTerms
from nfs_dask.models.model import Model, of_others
from nfs_dask.models.naive_bayes_together import NaiveBayesTogether, add_runs
from nfs_dask.models.together import Together
from nfs_dask.statistics.binary_counts import check_binary


@dataclass(frozen=True, kw_only=True)
class NaiveBayesModel(Model):
    """A naive Bayes classifier over a few features.

    A document x is scored, for each class c, by ``class_log_prior[c]`` plus ``x_i * present[c, i]`` of each selected
    feature i; under a threshold, by ``present[c, i]`` where x_i is above it and ``absent[c, i]`` where it is not.
    Features that are not selected are as likely in one class as in any other and do not appear; or all of them count as
    one more feature, whose values add ``rest[c]`` each.
    """

    class_log_prior: Array  # (C,) float64; -inf for a class that is never predicted
    alpha: float
    present: Array  # (C, k) float64, at most 0
    absent: Array | None = None  # (C, k) float64; with a threshold only
    threshold: float | None = None  # of values that count as present; None: values count as they are
    binary_only: bool = False  # refuse values besides 0 and 1
    rest: Array | None = None  # (C,) float64, finite and at most 0; without a threshold only

    @property
    def measure(self) -> str:
        return "predicted error" if self.method == "error" else "log likelihood"

    @property
    def inputs(self) -> Array:
        return self.support if self.rest is None else np.arange(self.n_features)

    @property
    def needs_lengths(self) -> bool:
        return self.rest is not None

    @property
    def has_probabilities(self) -> bool:
        return True

    @property
    def is_linear(self) -> bool:
        return True

    @cached_property
    def steps(self) -> LogTerms:
        """(C, k) what one unit of a feature, or its presence rather than absence, adds to the score of each class."""
        present = LogTerms.of(self.present)
        return present if self.absent is None else present - LogTerms.of(self.absent)

    @cached_property
    def start(self) -> LogTerms:
        """(C,) the score of an empty document."""
        prior = LogTerms.of(self.class_log_prior)
        if self.absent is None:
            return prior
        absent = LogTerms.of(self.absent)
        return LogTerms(prior.finite + absent.finite.sum(axis=1), prior.zeros + absent.zeros.sum(axis=1))

    def joint_log_likelihood(self, block: Block, trusted: bool = False) -> Array:
        """The score of each row for each class, (n, C): log P(c) + log P(x|c) up to a constant of the row.

        -inf rules a class out. A document that all classes rule out is left to the priors.
        """
        block = self._checked(block, trusted)
        if self.threshold is not None or (self.rest is None and not block.full):
            block = self.lookup.take(block)
        if self.threshold is not None:
            block = block if trusted else distinct(block)[0]
            block = replace(block, data=(block.data > self.threshold).view(np.uint8))
        scores = self._added(block, self.steps.finite, self.start.finite, self.rest)
        if self.start.zeros.any() or self.steps.zeros.any():
            present = replace(block, data=(block.data != 0).view(np.uint8))
            scores = LogTerms(scores, self._added(present, self.steps.zeros, self.start.zeros, None)).value
        if not np.isfinite(scores).all():
            scores[np.isneginf(scores).all(axis=1)] = self.class_log_prior
        return scores

    def _added(self, block: Block, steps: Array, start: Array, rest: Array | None) -> Array:
        """(n, C) the start, and the steps (C, k) as often as values say; others add the ``rest``, or nothing."""
        out = np.empty((block.n_rows, self.n_classes))
        steps, start = np.ascontiguousarray(steps, np.float64), np.ascontiguousarray(start, np.float64)
        if block.full and rest is None:
            columns = self.support if block.n_features == self.n_features else np.arange(len(self.support))
            add_products(block.matrix, columns, steps, start, out)
            return out
        indptr, positions, data, _ = block.entries
        if block.n_features > len(self.support):
            positions = self.lookup.positions(positions)
        if rest is not None:
            positions = np.where(positions < 0, len(self.support), positions)
            steps = np.append(steps, rest[:, None], axis=1)
        out[:] = start
        firsts = np.arange(steps.shape[1] + 1) * self.n_classes
        add_runs(indptr, positions, data, firsts, steps.T.ravel(), out)
        return out

    def scores(self, block: Block, trusted: bool = False) -> Array:
        return self.joint_log_likelihood(block, trusted)

    @classmethod
    def together(cls, models: Sequence[Self]) -> Together:
        alone = any(model.rest is not None for model in models)
        return (None if alone else NaiveBayesTogether.of(models)) or super().together(models)

    def contributions(self, block: Block, trusted: bool = False) -> Contributions:
        """Of what is present. The base has the prior, what the absence of all features says, and the `rest`.

        A class that cannot be without a feature is ruled out by the base of the rows that are. Where all classes are
        ruled out, which leaves a row to the priors, these are its base, and features contribute nothing.
        """
        block = self._checked(block, trusted)
        by_value, threshold = self.threshold is None, self.threshold or 0.0
        entries = SelectedEntries.of(block, self.lookup, lambda data: data != 0 if by_value else data > threshold)
        times = entries.values[:, None] if by_value else 1.0
        steps = LogTerms(times * self.steps.finite.T[entries.positions], self.steps.zeros.T[entries.positions])
        taken_back = entries.row_sums(np.minimum(steps.zeros, 0))  # absences that are none
        steps = LogTerms(steps.finite, np.maximum(steps.zeros, 0))
        base = LogTerms(self._start_of(block), self.start.zeros + taken_back)
        nowhere: Array = np.all(base.zeros + entries.row_sums(steps.zeros) > 0, axis=1)
        prior = LogTerms.of(self.class_log_prior)
        base.finite[nowhere], base.zeros[nowhere] = prior.finite, prior.zeros
        steps.finite[nowhere[entries.rows]] = steps.zeros[nowhere[entries.rows]] = 0
        if self.n_classes == 2:
            base, steps = base[:, 1] - base[:, 0], steps[:, 1] - steps[:, 0]
        return Contributions(base.value, entries, steps.value)

    def _start_of(self, block: Block) -> Array:
        """(n, C) finite parts of the scores without the selected features; features that are not are among the rest."""
        start = np.tile(self.start.finite, (block.n_rows, 1))
        if self.rest is not None:
            others = self.lookup.positions(block.indices) < 0
            rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
            lengths = np.bincount(rows[others], block.data[others].astype(np.float64), minlength=block.n_rows)
            start += lengths[:, None] * self.rest
        return start

    def log_odds(self, scores: Array) -> Array:
        return scores

    def coefficients(self) -> tuple[Array, Array]:
        """For more than two classes less what the classes are worth on average, under the documents they have."""
        average = self._average(self.steps)
        weights, start = self._beside(self.steps, average), self.start
        if self.n_classes == 2:
            start = start[1:] - start[:1]
        if self.rest is not None:
            others = LogTerms.of(self.rest[:, None])
            chosen = weights
            weights = np.repeat(self._beside(others, self._average(others)), self.n_features, axis=1)
            weights[:, self.support] = chosen
        return weights, start.value

    def margins(self) -> Array:
        """(C, k) how much more a feature adds to the score of a class than to that of others on average.

        On average over the documents of other classes; 0 where there are no others.
        """
        steps, out = self.steps[self.seen], np.zeros(self.steps.finite.shape)
        if len(self.seen) > 1:
            documents = self.class_count[self.seen]
            finite, weights = of_others(steps.finite, documents)
            zeros, _ = of_others(steps.zeros, documents)
            out[self.seen] = LogTerms(steps.finite - finite / weights, steps.zeros * weights - zeros).value
        return out

    def _average(self, steps: LogTerms) -> Array:
        """(n,) what features are worth to documents of all classes on average, as far as that is finite."""
        weights = self.class_count[:, None] * (steps.zeros == 0)
        total = weights.sum(axis=0)
        shares = np.divide(weights, total, where=total > 0, out=np.zeros(weights.shape))
        return np.asarray((shares * steps.finite).sum(axis=0))

    def _beside(self, steps: LogTerms, average: Array) -> Array:
        """What features are worth to a class besides the average: of two classes, to the second besides the first.

        A class without documents is an average one.
        """
        finite = np.where(self.class_count[:, None] > 0, steps.finite, average)
        known = LogTerms(finite, steps.zeros)
        if self.n_classes == 2:
            return (known[1:] - known[:1]).value
        return LogTerms(finite - average, steps.zeros).value

    def _checked(self, block: Block, trusted: bool) -> Block:
        """The block; ``trusted`` values were checked when the data were written."""
        check_structure(block)
        if not trusted:
            check_values(block, "real")
        if self.binary_only:
            check_binary(block)
        return block
