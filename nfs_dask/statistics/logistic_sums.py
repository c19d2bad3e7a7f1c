"""The likelihood of a logistic model and its derivatives, as totals over documents: one step of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.solvers.logistic.likelihood import Derivatives, derivatives, prior_offsets
from nfs_dask.statistics.collected_rows import dense_rows
from nfs_dask.statistics.statistic import State, Statistic


@dataclass(frozen=True)
class FitSums(Statistic):
    """Sums of `nfs_dask.solvers.logistic.likelihood.derivatives` over documents whose columns are their features.

    Totals: "log_likelihood" (1,), "gradient" (P,), "hessian" (P, P) and "extremes" (3,), the least margin in the
    direction theta, that of the step, and the greatest spread.
    """

    n_classes: int
    n_regions: int
    theta: tuple[float, ...]
    step: tuple[float, ...]
    prior: tuple[float, ...] | None  # weight of the documents of each class, where the prior is fixed by it

    name: ClassVar[str] = "fit_sums"
    accepts: ClassVar[Kind] = "signed"

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        return {key: list(value) if isinstance(value, tuple) else value for key, value in described.items()}

    def small(self) -> FitSums:
        n_classes, n_regions = (2, 4) if self.n_classes == 2 else (4, 1)  # of four columns
        zero = (0.0,) * (n_classes - 1 + n_regions)
        return FitSums(n_classes, n_regions, zero, zero, None)

    def zero(self) -> State:
        return _state_of(Derivatives.zero(len(self.theta)))

    def update(self, state: State, block: Block) -> None:
        features = features_of(dense_rows(block), self.n_classes, self.n_regions)
        codes = block.codes.astype(np.int64)
        offsets = None if self.prior is None else fixed_offsets(np.array(self.prior), codes, block.weights)
        theta, step = np.array(self.theta), np.array(self.step)
        found = derivatives(features, codes, theta, step, weights=block.weights, offsets=offsets)
        state.totals.update(_state_of(derivatives_of(state.totals) + found).totals)

    def merge(self, left: State, right: State) -> State:
        return _state_of(derivatives_of(left.totals) + derivatives_of(right.totals))

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return 0


def derivatives_of(totals: Mapping[str, Array]) -> Derivatives:
    """The sums in a state's totals."""
    margin, step_margin, step_spread = totals["extremes"].tolist()
    likelihood = float(totals["log_likelihood"][0])
    return Derivatives(likelihood, totals["gradient"], totals["hessian"], margin, step_margin, step_spread)


def features_of(rows: Array, n_classes: int, n_regions: int) -> Array:
    """Features as the likelihood takes them, (n, R) or (n, R, C), from rows of a `FeatureView`."""
    return rows if n_classes == 2 else rows.reshape(len(rows), n_regions, n_classes)


def fixed_offsets(class_weight: Array, codes: Array, weights: Array | None) -> Array:
    """Log priors as documents see them, each of which leaves min(weight, 1) of itself out."""
    removed = np.ones(len(codes)) if weights is None else np.minimum(weights.astype(np.float64), 1.0)
    return prior_offsets(class_weight, codes, removed)


def _state_of(sums: Derivatives) -> State:
    totals = {
        "log_likelihood": np.array([sums.log_likelihood]),
        "gradient": np.array(sums.gradient),
        "hessian": np.array(sums.hessian),
        "extremes": np.array([sums.margin, sums.step_margin, sums.step_spread]),
    }
    return State({}, totals)
