"""Stage one of two: ways to choose k features, with the settings of the papers, each on its clock.

Where a penalty must be found that leaves about k features, seconds are those of the last fit alone, as in the papers;
those of all fits of the search are told beside.

References: NFS section 7, two-stage procedures; the odds ratio is that of Mladenic and Grobelnik (1999).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import RFE, chi2
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC, l1_min_c

from nfs_dask import SparseMultinomialNB

MOST_FITS = 8  # of one search for a penalty
NEAR_ENOUGH = 0.1  # of k


@dataclass(frozen=True)
class Choice:
    """Chosen features, and what it took."""

    support: np.ndarray
    seconds: float
    search: float  # seconds of all fits


Chooser = Callable[[Any, np.ndarray, int, float], Choice]  # of rows, labels, k and the smoothing


def at_once(choose: Callable[[Any, np.ndarray, int, float], np.ndarray]) -> Chooser:
    """A way that needs no search."""

    def chooser(X: Any, y: np.ndarray, k: int, alpha: float) -> Choice:
        start = time.perf_counter()
        support = choose(X, y, k, alpha)
        took = time.perf_counter() - start
        return Choice(np.sort(support), took, took)

    return chooser


def largest(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argpartition(scores, len(scores) - k)[len(scores) - k :]


def ours(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return SparseMultinomialNB(k=k, alpha=alpha).fit(X, y).get_support(indices=True)


def thresholded(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    logs = MultinomialNB(alpha=alpha).fit(X, y).feature_log_prob_
    return largest(np.abs(logs[1] - logs[0]), k)


def log_odds(X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
    """Of documents that have a feature, in the second class over the first."""
    n = np.array([(y == c).sum() for c in (0, 1)], np.float64)
    have = np.stack([np.bincount(X[y == c].indices, minlength=X.shape[1]) for c in (0, 1)])
    share = (have + alpha) / (n + 2 * alpha)[:, None]
    odds = share / (1 - share)
    return np.log(odds[1] / odds[0])


def odds_ratio(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return largest(log_odds(X, y, alpha), k)


def odds_ratio_of_both(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return largest(np.abs(log_odds(X, y, alpha)), k)


def by_chi2(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return largest(np.nan_to_num(chi2(X, y)[0], nan=-1.0), k)


def rfe_logistic(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    model = LogisticRegression(C=1e4, solver="lbfgs", max_iter=100)
    return RFE(model, n_features_to_select=k, step=0.3).fit(X, y).get_support(indices=True)


def rfe_svm(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    model = LinearSVC(C=1e4, dual=False, random_state=0)
    return RFE(model, n_features_to_select=k, step=0.3).fit(X, y).get_support(indices=True)


def l1_logistic(X: Any, y: np.ndarray, C: float) -> np.ndarray:
    """scikit-learn before 1.8 needs ``penalty="l1"`` besides."""
    return LogisticRegression(C=C, l1_ratio=1, solver="saga", max_iter=100, random_state=0).fit(X, y).coef_


def l1_svm(X: Any, y: np.ndarray, C: float) -> np.ndarray:
    return LinearSVC(C=C, penalty="l1", dual=False, random_state=0).fit(X, y).coef_


def lasso(X: Any, y: np.ndarray, C: float) -> np.ndarray:
    return Lasso(alpha=1 / C, selection="cyclic", tol=1e-5).fit(X, y.astype(np.float64)).coef_


def least_of_lasso(X: Any, y: np.ndarray) -> float:
    """1 / alpha from which on anything is chosen."""
    centered = y - y.mean()
    means = np.asarray(X.mean(axis=0)).ravel()
    return len(y) / float(np.abs(X.T @ centered - means * centered.sum()).max())


def searched(
    coefficients: Callable[[Any, np.ndarray, float], np.ndarray], least: Callable[[Any, np.ndarray], float]
) -> Chooser:
    """A way whose penalty must be found: log C is interpolated by log k, until about k coefficients are not 0."""

    def chooser(X: Any, y: np.ndarray, k: int, alpha: float) -> Choice:
        X, total = X.astype(np.float64), 0.0
        known = [(float(np.log(least(X, y))), 0.0)]  # of log C and of log of the number of features, ascending
        found = []
        at = known[0][0] + np.log(2.0)
        for _ in range(MOST_FITS):
            start = time.perf_counter()
            support = np.flatnonzero(coefficients(X, y, float(np.exp(at))))
            took = time.perf_counter() - start
            total += took
            found.append((support, took))
            if abs(len(support) - k) <= NEAR_ENOUGH * k:
                break
            known = sorted([*known, (at, float(np.log(max(len(support), 1))))])
            at = following(known, float(np.log(k)))
        support, took = min(found, key=lambda one: abs(len(one[0]) - k))
        return Choice(support, took, total)

    return chooser


def following(known: list[tuple[float, float]], wanted: float) -> float:
    """Where next: between those around the wanted number, nearer to none of them than a tenth, or beyond all."""
    above = [point for point in known if point[1] >= wanted]
    below = [point for point in known if point[1] < wanted]
    if not above:
        return below[-1][0] + np.log(4.0)
    if not below:
        return above[0][0] - np.log(2.0)
    (low, few), (high, many) = below[-1], above[0]
    share = (wanted - few) / (many - few)
    return low + (high - low) * float(np.clip(share, 0.1, 0.9))


def least_of_svm(X: Any, y: np.ndarray) -> float:
    return float(l1_min_c(X, y, loss="squared_hinge"))


def least_of_logistic(X: Any, y: np.ndarray) -> float:
    return float(l1_min_c(X, y, loss="log"))


OURS = "sparse multinomial"
FAST: dict[str, Chooser] = {  # linear in the entries
    OURS: at_once(ours),
    "thresholded naive Bayes": at_once(thresholded),
    "odds ratio": at_once(odds_ratio),
    "odds ratio of both classes": at_once(odds_ratio_of_both),
    "chi2": at_once(by_chi2),
}
CHOOSERS: dict[str, Chooser] = FAST | {
    "l1 logistic": searched(l1_logistic, least_of_logistic),
    "RFE logistic": at_once(rfe_logistic),
    "l1 SVM": searched(l1_svm, least_of_svm),
    "RFE SVM": at_once(rfe_svm),
    "LASSO": searched(lasso, least_of_lasso),
}


def warm_up() -> None:
    """Compile, or load what is compiled, before clocks run: of whole numbers and of reals."""
    rng = np.random.default_rng(0)
    for values in (rng.poisson(1, (40, 30)), rng.random((40, 30))):
        for choose in FAST.values():
            choose(sparse.csr_array(values), np.arange(40) % 2, 5, 1.0)
