"""Choosing features by counts in memory: seconds, and how far from the bound."""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.multinomial import count, solve

from .cases import SCALE


class Choose:
    """The best 1 % of features, by whole and by real counts of two classes."""

    params = (["whole", "real"], [1_000, 100_000, 1_000_000])
    param_names = ("counts", "features")

    def setup(self, kind: str, features: int) -> None:
        rng = np.random.default_rng(features)
        common = rng.pareto(1.1, int(features * SCALE))
        totals = np.floor(common * rng.uniform(0.3, 3, (2, len(common))))
        self.counted = count(totals.astype(np.int64) if kind == "whole" else totals * 0.37)
        self.k = len(common) // 100
        self.time_choose()  # loads what was compiled

    def time_choose(self, *_: object) -> None:
        self.found = solve(self.counted, self.k)

    def track_gap(self, *_: object) -> float:
        return float(self.found.gap / self.found.bound)

    track_gap.unit = "of the bound"  # type: ignore[attr-defined]
