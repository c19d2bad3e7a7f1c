"""Cross-validation of many k and alphas."""

from __future__ import annotations

import nfs_dask as nfs

from .cases import counts


class CrossValidate:
    """Five folds, ten k and, where a method smooths, three alphas."""

    params = ("multinomial", "l2")
    param_names = ("method",)
    timeout = 300

    def setup(self, method: str) -> None:
        self.X, self.y = counts(rows=10_000, features=30_000)
        self.time_cross_validate(method)

    def time_cross_validate(self, method: str) -> None:
        alphas = (0.1, 0.3, 1.0) if method == "multinomial" else (1.0,)
        ks = [10, 30, 100, 300, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000]
        engine = nfs.SerialEngine()
        nfs.cross_validate(self.X, self.y, method=method, ks=ks, alphas=alphas, folds=5, engine=engine)
