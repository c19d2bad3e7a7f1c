"""Genes chosen by sparse l1 centers and by others, then a linear SVM: balanced accuracy and run time. SC Figure 2.

Each random split trains on four fifths of each class. Centers choose among values as they were measured, as they are
robust; the SVM gets the chosen genes standardized: on raw ones it is no better, and may need seconds to converge. All
others see all genes standardized, which is not on their clock; the odds ratio sees which values are above the gene's
median. Optima of l1 logistic regression and of the LASSO have no more genes than there are rows: of larger shares they
are asked for as many as rows. The LASSO is found by least angles, which follow its whole path and are many times faster
here than descent along coordinates. The odds ratio of both classes is not in the paper. Chin's set is not to be had;
West's, of breast cancer too, stands beside.

References: SC section 6.2, Table 2, Figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import lars_path
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.papers import datasets, two_stages
from benchmarks.papers.choosers import (
    Choice,
    at_once,
    least_of_logistic,
    odds_ratio,
    odds_ratio_of_both,
    searched,
)
from benchmarks.papers.experiment import Settings
from benchmarks.papers.sc_figure_1 import l1_logistic
from benchmarks.papers.two_stages import ELIMINATED, Experiment, Split, Way, one_by_one
from nfs_dask import SparseCentroid

TITLE = "Balanced accuracy and run time of ways to choose genes, by the share of genes"
SETS = ("chowdary", "chin", "singh", "west")
SHARES = (0.0005, 0.001, 0.005, 0.01, 0.02)
SPLITS = 50


def centers(k: int) -> SparseCentroid:
    return SparseCentroid(k, metric="manhattan")


def by_medians(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return centers(k).fit(X, y).get_support(indices=True)


def lasso_path(X: Any, y: np.ndarray, ks: Sequence[int]) -> list[Choice]:
    """The least angles of a LASSO, as far as the first point with k genes."""
    return [_lasso(X, y, k) for k in ks]


def _lasso(X: Any, y: np.ndarray, k: int) -> Choice:
    start = process_time()
    signs = y - y.mean()
    coefficients = lars_path(X, signs, method="lasso", max_iter=4 * k)[2]
    numbers = (coefficients != 0).sum(axis=0)
    enough = np.flatnonzero(numbers >= k)
    point = enough[0] if len(enough) else int(numbers.argmax())
    took = process_time() - start
    return Choice(k, np.flatnonzero(coefficients[:, point]), took, took)


WAYS = {
    "l1 centers": Way(one_by_one(at_once(by_medians)), "measured", alone=centers),
    "l1 logistic": Way(one_by_one(searched(l1_logistic, least_of_logistic)), "standardized", most_rows=True),
    "RFE logistic": Way(ELIMINATED, "standardized"),
    "LASSO": Way(lasso_path, "standardized", most_rows=True),
    "odds ratio": Way(one_by_one(odds_ratio), "above the median"),
    "odds ratio, both classes": Way(one_by_one(odds_ratio_of_both), "above the median"),
}
EXPERIMENT = Experiment(WAYS, lambda: SVC(kernel="linear"), balanced_accuracy_score)


@lru_cache(maxsize=1)
def measured(folder: Path, name: str) -> datasets.Genes:
    found = datasets.genes(folder, name)
    centers(1).fit(found.X, found.y)  # compiles
    return found


def split_of(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Split:
    scaler = StandardScaler().fit(X[train])
    standardized = scaler.transform(X[train])
    above = sparse.csr_array((X[train] > np.median(X[train], axis=0)).astype(np.float64))
    forms = {"measured": X[train], "standardized": standardized, "above the median": above}
    return Split(forms, y[train], standardized, scaler.transform(X[test]), y[test], X[test])


def part(name: str, settings: Settings) -> dict[str, Any]:
    dataset, i = two_stages.named(name)
    found = measured(settings.data, dataset)
    rows = two_stages.splits(found.y, i + 1, settings.seed)[i]
    ways = EXPERIMENT.split(split_of(found.X, found.y, *rows), SHARES)
    return {"n": found.X.shape[0], "m": found.X.shape[1], "ways": ways}


def run(settings: Settings) -> dict[str, Any]:
    names = two_stages.names(dict.fromkeys(SETS, settings.either(2, SPLITS)))
    with threadpool_limits(1):
        return two_stages.condensed(settings.each(names, lambda name: part(name, settings)))


def table(values: dict[str, Any]) -> str:
    return two_stages.tables(values, "balanced accuracy")


def summary(values: dict[str, Any]) -> str:
    return two_stages.short_tables(values, "balanced accuracy")


def draw(values: dict[str, Any]) -> Any:
    return two_stages.picture(values, "balanced accuracy")
