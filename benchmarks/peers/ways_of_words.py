"""Ways to choose k words of two classes, each with the classifier that it is itself, if it is one.

All see the same counts of words; logistic regressions see log(1 + count). Penalties are searched for until at least k
words are left, and at most a tenth more, of which the k of largest coefficients are kept; the classifier keeps them
all. Slow ways run in a process of their own, within `LIMITS`, and on sets alone that are small enough.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from benchmarks.papers.choosers import MOST_FITS, NEAR_ENOUGH, chi2_scores, following, largest, least_of_logistic
from benchmarks.papers.experiment import Settings
from benchmarks.peers import spark
from benchmarks.peers.apart import Answer, Heard, Limits, heard
from benchmarks.peers.sets import SETS, Rows, counted
from nfs_dask import SparseBernoulliNB, SparseCentroid, SparseMultinomialNB
from nfs_dask.solvers.naive_bayes import bisection

KS = (9, 100, 1000)
ALPHA = 1.0
LIMITS = Limits(seconds=60, nbytes=8 << 30)
GAMMA = 3.0  # of the penalty MCP, as skglm has it where it is not told


@dataclass(frozen=True)
class Chosen:
    """The words of one k, ascending, and what its own classifier says of the texts to judge by, if there is one."""

    support: np.ndarray
    said: np.ndarray | None = None


Chooser = Callable[[Rows, Sequence[int]], Iterator[Chosen]]  # one answer for each k, which ascend


@dataclass(frozen=True)
class Way:
    choose: Chooser
    prepare: Callable[[], Any] | None = None  # of slow ways: what to import, compile and start

    @property
    def slow(self) -> bool:
        return self.prepare is not None


def by_model(make: Callable[[int], Any]) -> Chooser:
    """One of ours."""

    def choose(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
        for k in ks:
            model = make(k).fit(rows.X, rows.y)
            yield Chosen(model.get_support(indices=True), model.predict(rows.X_test))

    return choose


def best_of(scores: np.ndarray, ks: Sequence[int]) -> Iterator[Chosen]:
    for k in ks:
        yield Chosen(np.sort(largest(scores, k)))


def printed(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    totals = np.stack([np.asarray(rows.X[rows.y == c].sum(axis=0)).ravel() for c in (0, 1)])
    for k in ks:
        yield Chosen(np.sort(bisection.solve(totals, k, alpha=ALPHA).support))


def chi2(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    return best_of(chi2_scores(rows.X, rows.y, ALPHA), ks)


def mutual_information(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    return best_of(mutual_info_classif(rows.X, rows.y, discrete_features=True), ks)


def largest_weights(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    """Its own classifier has these weights, and 0 for all other words."""
    model = MultinomialNB(alpha=ALPHA).fit(rows.X, rows.y)
    weights = model.feature_log_prob_[1] - model.feature_log_prob_[0]
    prior = model.class_log_prior_[1] - model.class_log_prior_[0]
    for one in best_of(np.abs(weights), ks):
        odds = rows.X_test[:, one.support] @ weights[one.support] + prior
        yield Chosen(one.support, (odds > 0).astype(np.int64))


def searched(fit: Callable[[Any, np.ndarray, float], Any]) -> Chooser:
    """A way with a penalty: ``fit`` takes rows, labels and C; what was found for one k helps with the next."""

    def choose(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
        known = [(float(np.log(least_of_logistic(rows.logs, rows.y))), 0.0)]  # log C, log of how many words it keeps
        models: dict[float, Any] = {}
        for k in ks:
            model = _about(k, lambda at: fit(rows.logs, rows.y, float(np.exp(at))), known, models)
            weights = np.abs(np.ravel(model.coef_))
            kept = largest(weights, min(k, np.count_nonzero(weights)))
            yield Chosen(np.sort(kept), (np.asarray(model.predict(rows.logs_test)) > 0).astype(np.int64))

    return choose


def _about(k: int, fit: Callable[[float], Any], known: list[tuple[float, float]], models: dict[float, Any]) -> Any:
    """The model with fewest words that has at least k, or the one with most; log C is interpolated by log k."""
    number = {at: np.exp(n) for at, n in known}
    for _ in range(MOST_FITS):
        if any(k <= number[at] <= (1 + NEAR_ENOUGH) * k for at in models):
            break
        at = following(known, float(np.log((1 + NEAR_ENOUGH / 2) * k)))
        models[at] = fit(at)
        number[at] = max(np.count_nonzero(models[at].coef_), 1)
        known[:] = sorted([*known, (at, float(np.log(number[at])))])
    enough = [at for at in models if number[at] >= k]
    return models[min(enough, key=number.__getitem__) if enough else max(models, key=number.__getitem__)]


def l1_logistic(X: Any, y: np.ndarray, C: float) -> Any:
    """scikit-learn before 1.8 needs ``penalty="l1"`` besides."""
    return LogisticRegression(C=C, l1_ratio=1, solver="liblinear", max_iter=200, tol=1e-3, random_state=0).fit(X, y)


def skglm_l1(X: Any, y: np.ndarray, C: float) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(alpha=1 / (C * len(y))).fit(sparse.csc_matrix(X), y)


def skglm_mcp(X: Any, y: np.ndarray, C: float) -> Any:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD

    penalty = MCPenalty(1 / (C * len(y)), GAMMA)
    model = GeneralizedLinearEstimator(Logistic(), penalty, AndersonCD(fit_intercept=True))
    return model.fit(sparse.csc_matrix(X), 2.0 * y - 1)


def compiled(fit: Callable[[Any, np.ndarray, float], Any]) -> Callable[[], Any]:
    X = sparse.csr_array(np.random.default_rng(0).random((40, 30)))
    return lambda: fit(X, np.arange(40) % 2, 1.0)


def abess(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    from abess import LogisticRegression

    X, X_test = sparse.csr_matrix(rows.logs), sparse.csr_matrix(rows.logs_test)
    for k in ks:
        model = LogisticRegression(support_size=k).fit(X, rows.y)
        yield Chosen(np.flatnonzero(model.coef_), np.asarray(model.predict(X_test)).astype(np.int64))


def import_abess() -> None:
    import abess  # noqa: F401


def spark_chi2(rows: Rows, ks: Sequence[int]) -> Iterator[Chosen]:
    with tempfile.TemporaryDirectory() as folder:
        read = _in_spark(Path(folder), rows.X, rows.y)
        for k in ks:
            yield Chosen(spark.by_chi2(read, k))


def _in_spark(folder: Path, X: Any, y: np.ndarray) -> Any:
    return spark.read(spark.write(folder / "rows.parquet", [(X.indptr, X.indices, X.data, y)], X.shape[1]))


def start_spark() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _in_spark(Path(folder), sparse.csr_array(np.eye(2)), np.arange(2)).count()


OURS = "sparse multinomial"
WAYS = {
    OURS: Way(by_model(lambda k: SparseMultinomialNB(k, alpha=ALPHA))),
    "sparse Bernoulli": Way(by_model(lambda k: SparseBernoulliNB(k, alpha=ALPHA, binarize=0.0))),
    "l2 centers": Way(by_model(SparseCentroid)),
    "Mahalanobis centers": Way(by_model(lambda k: SparseCentroid(k, metric="mahalanobis", covariance="total"))),
    "the paper's bisection": Way(printed),
    "chi2": Way(chi2),
    "largest weights": Way(largest_weights),
    "l1 logistic": Way(searched(l1_logistic)),
    "mutual information": Way(mutual_information, lambda: None),
    "Spark's chi2": Way(spark_chi2, start_spark),
    "abess": Way(abess, import_abess),
    "skglm, l1": Way(searched(skglm_l1), lambda: compiled(skglm_l1)()),
    "skglm, MCP": Way(searched(skglm_mcp), lambda: compiled(skglm_mcp)()),
}
LIBRARIES = ("abess", "skglm", "pyspark")


def warm_up() -> None:
    """Compile what is ours, before clocks run."""
    X, y = sparse.csr_array(np.random.default_rng(0).poisson(1, (40, 30))), np.arange(40) % 2
    rows = Rows(X, y, X, y, np.arange(30).astype(str))
    for way in WAYS.values():
        if not way.slow:
            list(way.choose(rows, (5,)))


def work(way: str, rows: Rows, ks: Sequence[int]) -> Iterator[Any]:
    """In a process of its own: say that all is ready, then answer."""
    if prepare := WAYS[way].prepare:
        prepare()
    yield None
    yield from WAYS[way].choose(rows, ks)


def here(way: str, rows: Rows, ks: Sequence[int]) -> Heard:
    """The same in this process."""
    begun, used, out = time.perf_counter(), time.process_time(), Heard()
    for value in WAYS[way].choose(rows, ks):
        out.answers.append(Answer(value, time.perf_counter() - begun, time.process_time() - used, 0))
    return out


@dataclass(frozen=True)
class Choices:
    """What all ways choose of a set."""

    rows: Rows
    ks: tuple[int, ...]
    ways: dict[str, Heard]
    left_out: tuple[str, ...]  # slow ways, where a set is too large for them or the quick form was asked for


@cache
def _choices(data: Path, name: str, quick: bool, seed: int) -> Choices:
    rows = counted(Settings(data, quick=quick, seed=seed), name)
    ks = tuple(k for k in KS if 2 * k < rows.X.shape[1])
    asked = [way for way, of in WAYS.items() if not of.slow or (SETS[name].few and not quick)]
    warm_up()
    ways = {way: heard(work, (way, rows, ks), LIMITS) if WAYS[way].slow else here(way, rows, ks) for way in asked}
    return Choices(rows, ks, ways, tuple(way for way in WAYS if way not in asked))


def choices(settings: Settings, name: str) -> Choices:
    """Chosen once for all questions that are asked in one run."""
    return _choices(settings.data, name, settings.quick, settings.seed)
