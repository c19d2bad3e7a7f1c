"""Stage one of two: ways to choose k features, with the settings of the papers, each on its clock.

Clocks count seconds of processor of this process, so that work beside does not matter. A way is asked for several k of
the same rows: what does not depend on k is done once, and is on the clock of each. Where a penalty must be found that
leaves about k features, seconds are those of the last fit alone, as in the papers; those of all fits of the search are
told beside, among them what fits for other k taught it.

References: NFS section 7, two-stage procedures; the odds ratio is that of Mladenic and Grobelnik (1999).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import chi2
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC, l1_min_c

from nfs_dask import SparseMultinomialNB

MOST_FITS = 8  # of one search for a penalty
NEAR_ENOUGH = 0.1  # of k
STEP = 0.3  # share of the features that recursive elimination drops at once


@dataclass(frozen=True)
class Choice:
    """Chosen features, and what it took."""

    k: int  # features that were asked for
    support: np.ndarray
    seconds: float
    search: float  # seconds of all fits


# Of rows, labels, several k and the smoothing: a choice for each k, in the order that is cheapest.
Chooser = Callable[[Any, np.ndarray, Sequence[int], float], Iterator[Choice]]
Coefficients = Callable[[Any, np.ndarray, float], np.ndarray]  # of rows, labels and a penalty


def at_once(choose: Callable[[Any, np.ndarray, int, float], np.ndarray]) -> Chooser:
    """A way that needs no search, and is asked for each k anew."""

    def chooser(X: Any, y: np.ndarray, ks: Sequence[int], alpha: float) -> Iterator[Choice]:
        for k in ks:
            start = process_time()
            support = choose(X, y, k, alpha)
            took = process_time() - start
            yield Choice(k, np.sort(support), took, took)

    return chooser


def by_scores(scores: Callable[[Any, np.ndarray, float], np.ndarray]) -> Chooser:
    """A way that takes the features with the largest scores."""

    def chooser(X: Any, y: np.ndarray, ks: Sequence[int], alpha: float) -> Iterator[Choice]:
        start = process_time()
        found = scores(X, y, alpha)
        once = process_time() - start
        for choice in at_once(lambda X, y, k, alpha: largest(found, k))(X, y, ks, alpha):
            yield Choice(choice.k, choice.support, once + choice.seconds, once + choice.search)

    return chooser


def largest(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argpartition(scores, len(scores) - k)[len(scores) - k :]


def ours(X: Any, y: np.ndarray, k: int, alpha: float) -> np.ndarray:
    return SparseMultinomialNB(k=k, alpha=alpha).fit(X, y).get_support(indices=True)


def thresholded(X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
    logs = MultinomialNB(alpha=alpha).fit(X, y).feature_log_prob_
    return np.abs(logs[1] - logs[0])


def log_odds(X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
    """Of documents that have a feature, in the second class over the first."""
    n = np.array([(y == c).sum() for c in (0, 1)], np.float64)
    have = np.stack([np.bincount(X[y == c].indices, minlength=X.shape[1]) for c in (0, 1)])
    share = (have + alpha) / (n + 2 * alpha)[:, None]
    odds = share / (1 - share)
    return np.log(odds[1] / odds[0])


def odds_of_both(X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
    return np.abs(log_odds(X, y, alpha))


def chi2_scores(X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
    return np.nan_to_num(chi2(X, y)[0], nan=-1.0)


odds_ratio, odds_ratio_of_both, by_chi2 = by_scores(log_odds), by_scores(odds_of_both), by_scores(chi2_scores)


def eliminated(model: Callable[[], Any]) -> Chooser:
    """Recursive elimination as scikit-learn's RFE does it, a step of which drops 30 % of all features, or what is left.

    The rounds before the last one are the same for all k. RFE fits what it has chosen, too: this is left out.
    """

    def chooser(X: Any, y: np.ndarray, ks: Sequence[int], alpha: float) -> Iterator[Choice]:
        kept, took, step = np.arange(X.shape[1]), 0.0, max(1, int(STEP * X.shape[1]))
        waiting = sorted(ks)
        while waiting:
            start = process_time()
            worst = np.argsort(model().fit(X[:, kept], y).coef_.ravel() ** 2)
            took += process_time() - start
            while waiting and len(kept) - waiting[-1] <= step:
                k = waiting.pop()
                yield Choice(k, np.sort(kept[worst[len(kept) - k :]]), took, took)
            kept = np.sort(kept[worst[step:]])

    return chooser


def logistic() -> LogisticRegression:
    return LogisticRegression(C=1e4, solver="lbfgs", max_iter=100)


def svm() -> LinearSVC:
    return LinearSVC(C=1e4, dual=False, random_state=0)


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


def searched(coefficients: Coefficients, least: Callable[[Any, np.ndarray], float]) -> Chooser:
    """A way whose penalty must be found: log C is interpolated by log k, until about k coefficients are not 0."""

    def chooser(X: Any, y: np.ndarray, ks: Sequence[int], alpha: float) -> Iterator[Choice]:
        X = X.astype(np.float64)
        fits = Fits(X, y, coefficients, float(np.log(least(X, y))))
        for k in sorted(ks):
            yield fits.near(k)

    return chooser


@dataclass(frozen=True)
class Fit:
    """What one penalty leaves."""

    log_C: float
    support: np.ndarray
    seconds: float

    @property
    def point(self) -> tuple[float, float]:
        return self.log_C, float(np.log(max(len(self.support), 1)))


class Fits:
    """A search among penalties, which remembers for one k what it found for another."""

    def __init__(self, X: Any, y: np.ndarray, coefficients: Coefficients, least: float) -> None:
        self.X, self.y, self.coefficients, self.least = X, y, coefficients, least
        self.found: list[Fit] = []

    def near(self, k: int) -> Choice:
        """The fit that leaves about k features, or the nearest of as many as one search may make."""
        for _ in range(MOST_FITS):
            if any(abs(len(fit.support) - k) <= NEAR_ENOUGH * k for fit in self.found):
                break
            self.found.append(self._fit(self._next(k)))
        best = min(self.found, key=lambda fit: abs(len(fit.support) - k))
        return Choice(k, best.support, best.seconds, sum(fit.seconds for fit in self.found))

    def _next(self, k: int) -> float:
        known = sorted([(self.least, 0.0), *(fit.point for fit in self.found)])
        return following(known, float(np.log(k))) if self.found else self.least + float(np.log(2.0))

    def _fit(self, log_C: float) -> Fit:
        start = process_time()
        support = np.flatnonzero(self.coefficients(self.X, self.y, float(np.exp(log_C))))
        return Fit(log_C, support, process_time() - start)


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
    "thresholded naive Bayes": by_scores(thresholded),
    "odds ratio": odds_ratio,
    "odds ratio of both classes": odds_ratio_of_both,
    "chi2": by_chi2,
}
CHOOSERS: dict[str, Chooser] = FAST | {
    "l1 logistic": searched(l1_logistic, least_of_logistic),
    "RFE logistic": eliminated(logistic),
    "l1 SVM": searched(l1_svm, least_of_svm),
    "RFE SVM": eliminated(svm),
    "LASSO": searched(lasso, least_of_lasso),
}


def warm_up() -> None:
    """Compile, or load what is compiled, before clocks run: of whole numbers and of reals, of few features and many."""
    rng = np.random.default_rng(0)
    wide = sparse.random_array((40, 200_000), density=0.1, rng=rng)
    for values in (rng.poisson(1, (40, 30)), rng.random((40, 30)), wide, (10 * wide).ceil().astype(np.int64)):
        for choose in FAST.values():
            list(choose(sparse.csr_array(values), np.arange(40) % 2, [5], 1.0))
