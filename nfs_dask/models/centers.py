"""Sparse centers: the nearest centre, where the centres of the classes differ in a few features only.

References: SC (Calafiore and Fracastoro 2019) (7), (9), (12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure, check_values, distinct
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.errors import InputError
from nfs_dask.models.centers_together import CentersTogether, checked_distances
from nfs_dask.models.contributions import Contributions, SelectedEntries
from nfs_dask.models.distance_differences import (
    CenterTables,
    CsrEntries,
    advantages,
    advantages_at_zero,
    advantages_of_matrix,
    beside,
    mismatches,
)
from nfs_dask.models.model import Model, of_others
from nfs_dask.models.nested_centers import NestedCenters
from nfs_dask.models.together import Together

WHITENED_BYTES = 16 << 20  # of dense rows that are whitened at a time
COMPARED = 1 << 20  # values and classes that are compared with their mean at a time


@dataclass(frozen=True, kw_only=True)
class CentersModel(Model):
    """A classifier by distance to the centres of the classes, which are alike except in a few features.

    A document x belongs to the class c of the smallest sum over the selected features i of

    - ``(x_i - centers[c, i])^2`` (l2),
    - ``(x_i - centers[c, i])^2 / variances[i]`` (mahalanobis), and
    - ``|x_i - centers[c, i]|`` (l1).

    Scores are these distances to ``pooled`` less those to the centres. A feature without variance is at an infinite
    distance of a centre that x does not equal: such features are compared first, by how many of them do not agree.

    With ``covariance="full"``, ``(x - shift) @ root`` takes the place of x: features are whitened ones, one for each of
    the original features, and so are ``centers`` and ``pooled``. Each of them depends on all columns of the data.

    Classes without documents are never predicted; their rows say nothing.
    """

    centers: Array  # (C, k) float64
    pooled: Array  # (k,) float64, what the centres of all classes are in features that were not selected
    variances: Array | None = None  # (k,) float64, at least 0; mahalanobis only, and not with a root
    covariance: str | None = None  # mahalanobis only: "within", "total" or "full"
    root: Array | None = None  # (n_features, k) float64, columns of the root of the inverse covariance; "full" only
    shift: Array | None = None  # (n_features,) float64, taken off before whitening; with a root only, None: nothing

    def __post_init__(self) -> None:
        if self.root is not None and self.text is not None:
            raise InputError(
                'covariance="full" needs every column of a row, and raw text is read for selected ones only; '
                'take covariance="within", or fit to a matrix'
            )

    @property
    def compared(self) -> str:
        distance = "distance" if self.method == "l1" else "squared distance"
        return f"{distance} to {{1}} less that to {{0}}"

    @property
    def at_base(self) -> str:
        return "midway between the centers" if len(self.seen) == 2 else "at the mean of the centers"

    @property
    def absence_counts(self) -> bool:
        return True

    @property
    def has_probabilities(self) -> bool:
        """With a covariance within the classes: classes are normal, with that covariance, and as frequent as another.

        Of unequal frequencies the centres know nothing: a class weighs the same, however many documents it has.
        """
        return self.covariance == "within"

    @property
    def is_linear(self) -> bool:
        return self.method != "l1" and not self.exact.any()

    @property
    def inputs(self) -> Array:
        return self.support if self.root is None else np.arange(self.n_features)

    def scores(self, block: Block, trusted: bool = False) -> Array:
        block = _checked(block, trusted, self.lookup if self.root is None else None)
        out = np.full((block.n_rows, self.n_classes), -np.inf)
        out[:, self.seen] = self._advantages(block) if self.root is None else self._whitened_advantages(block)
        return out

    @classmethod
    def together(cls, models: Sequence[Self]) -> Together:
        """Side by side, where the larger ones have the features of the smaller ones, and none is without variance."""
        # What copies work out for themselves goes with them.
        if isinstance(models, NestedCenters) and (whole := replace(models.whole)).root is None:
            if not whole.exact.any():
                return CentersTogether.nested(replace(models, whole=whole))
        copies = [replace(model) for model in models]
        if any(model.root is not None or model.exact.any() for model in copies):
            return super().together(models)
        return CentersTogether.of(copies, [model.tables for model in copies]) or super().together(models)

    def contributions(self, block: Block, trusted: bool = False) -> Contributions:
        """What each value changes beside the mean of the centres of the classes; of whitened features under a root.

        Of two classes that is midway between them, where the decision is 0. All selected features are entries, as a
        value of 0 speaks for a class like any other. What is at an infinite distance of a centre rules its class out: a
        feature of no variance does so if it is at the centre of a class that remains.
        """
        block = _checked(block, trusted)
        if self.root is None:
            entries = SelectedEntries.of(block, self.lookup, lambda data: data != 0)
            rows = np.zeros((block.n_rows, len(self.support)))
            rows[entries.rows, entries.positions] = entries.values
        else:
            rows = self.whiten(block, trusted=True)
        n, k, C = *rows.shape, self.n_classes
        parts = np.zeros((n, k) if C == 2 else (n, k, C))
        step = max(1, COMPARED // (k * C))
        for first in range(0, n, step):
            added = self._beside_the_mean(rows[first : first + step])
            parts[first : first + step] = added[..., 1] - added[..., 0] if C == 2 else added
        base = np.full(C, -np.inf)
        base[self.seen] = 0.0 if C == 2 else beside(self.tables, rows[:0], self._mean)[1].sum(axis=0)
        base = np.full(n, base[1] - base[0]) if C == 2 else np.tile(base, (n, 1))
        return Contributions(base, SelectedEntries.of_dense(rows), parts.reshape(n * k, *parts.shape[2:]))

    def _beside_the_mean(self, rows: Array) -> Array:
        """(n, k, C) what the values of some rows change, -inf where they rule a class out."""
        centers, parts = self.tables.centers, np.zeros((*rows.shape, self.n_classes))
        added = beside(self.tables, rows, self._mean)[0]
        if self.exact.any():
            equal = rows[..., None] == centers
            missed = (~equal & self.exact[:, None]).sum(axis=1)
            out = (missed > missed.min(axis=1, keepdims=True))[:, None]
            remains = (equal & ~out).any(axis=2, keepdims=True) & self.exact[:, None]
            added[~equal & out & remains] = -np.inf
        parts[..., self.seen] = added
        return parts

    def log_odds(self, scores: Array) -> Array:
        return scores / 2

    def whiten(self, block: Block, trusted: bool = False) -> Array:
        """The selected whitened features of some rows, (n, k); of a model that has a root."""
        block = _checked(block, trusted)
        return np.concatenate([np.zeros((0, len(self.support))), *self._whitened(block)])

    def coefficients(self) -> tuple[Array, Array]:
        if not self.is_linear:
            raise InputError(
                "distances are no linear functions of the features by method 'l1', or with features of no variance; "
                "take predict or decision_function, or fit with a variance_floor above 0"
            )
        weights, intercepts = np.zeros((self.n_classes, len(self.inputs))), np.full(self.n_classes, -np.inf)
        slopes = 2 * self.tables.slopes
        weights[self.seen] = (slopes if self.root is None else self.root @ slopes).T
        intercepts[self.seen] = self._at_zero.sum(axis=0)
        if self.shift is not None:
            intercepts -= weights @ self.shift
        return (weights, intercepts) if self.n_classes != 2 else (weights[1:] - weights[:1], np.diff(intercepts))

    def margins(self) -> Array:
        """(C, k) how far the centre of a class is above those of others on average.

        On average over the documents of other classes; 0 where there are none. In standard deviations where the model
        has variances, otherwise in units of the feature.
        """
        centers, out = self.centers[self.seen], np.zeros(self.centers.shape)
        if len(centers) < 2:
            return out
        others, weights = of_others(centers, self.class_count[self.seen])
        above = centers - others / weights
        if self.variances is not None:
            infinite = np.copysign(np.inf, above, where=above != 0, out=np.zeros(above.shape))
            above = np.divide(above, np.sqrt(self.variances), where=self.variances > 0, out=infinite)
        out[self.seen] = above
        return out

    @cached_property
    def tables(self) -> CenterTables:
        """Of the classes that have documents."""
        centers, pooled = np.ascontiguousarray(self.centers[self.seen].T), np.ascontiguousarray(self.pooled)
        slopes = centers - pooled[:, None]
        if self.variances is not None:
            varies = (self.variances > 0)[:, None]
            slopes = np.divide(slopes, self.variances[:, None], where=varies, out=np.zeros(slopes.shape))
        return CenterTables(self.method == "l1", centers, pooled, slopes)

    @cached_property
    def _at_zero(self) -> Array:
        return advantages_at_zero(self.tables)

    @property
    def _mean(self) -> Array:
        """(k,) the mean of the centres, of two classes midway between them."""
        return np.asarray(self.tables.centers.mean(axis=1))

    @cached_property
    def exact(self) -> Array:
        """(k,) whether a feature has no variance, and differs between classes all the same."""
        if self.variances is None:
            return np.zeros(len(self.support), bool)
        centers = self.tables.centers
        return (self.variances == 0) & (centers != centers[:, :1]).any(axis=1)

    def _advantages(self, block: Block) -> Array:
        """Scores for the classes that have documents, of a block of the selected columns, or of a full one."""
        if block.full:
            out = advantages_of_matrix(block.matrix, self.support, self.tables, self._at_zero)
        else:
            out = advantages(CsrEntries(*block.entries[:3]), self.tables, self._at_zero)
        out = checked_distances(out, block)
        if self.exact.any():
            block = self.lookup.take(block) if block.full else block
            missed = mismatches(CsrEntries(*block.entries[:3]), self.tables.centers, self.exact)
            out[missed > missed.min(axis=1, keepdims=True)] = -np.inf
        return out

    def _whitened_advantages(self, block: Block) -> Array:
        """As `_advantages`, of whitened features."""
        every = np.arange(len(self.support))
        parts = [advantages_of_matrix(rows, every, self.tables, self._at_zero) for rows in self._whitened(block)]
        return checked_distances(np.concatenate([np.zeros((0, len(self.seen))), *parts]), block)

    def _whitened(self, block: Block) -> Iterator[Array]:
        """Some rows after others, whitened."""
        assert self.root is not None, "only a model with a full covariance whitens"
        together = max(1, WHITENED_BYTES // (8 * self.n_features))
        for first in range(0, block.n_rows, together):
            rows = _dense(block, first, min(first + together, block.n_rows))
            if self.shift is not None:
                rows -= self.shift
            yield rows @ self.root


def _checked(block: Block, trusted: bool, lookup: Lookup | None = None) -> Block:
    """The block with each column at most once in a row; with a ``lookup`` of its columns alone, unless it is full."""
    check_structure(block)
    if not trusted:
        check_values(block, "signed")
    if lookup is not None and not block.full:
        block = lookup.take(block)
    return block if trusted else distinct(block)[0]


def _dense(block: Block, first: int, stop: int) -> Array:
    """Some rows as a dense float64 array of their own."""
    low, high = block.indptr[first], block.indptr[stop]
    data = block.data[low:high]
    if block.full:
        return data.reshape(stop - first, block.n_features).astype(np.float64)
    rows = np.zeros((stop - first, block.n_features))
    lengths = np.diff(block.indptr[first : stop + 1])
    rows[np.repeat(np.arange(stop - first), lengths), block.indices[low:high]] = data
    return rows
