"""Two classes of 500 features that differ in the first 150, and documents of them: what ERR predicts and simulates.

The paper draws its probabilities (Figure 2) and does not print them; these have what its text says of them: a dense
hump between features 200 and 300, and differences so large that documents of the first class have their largest
variance at about 100 features. What speaks for the first class against the second is L_12, from the features that are
kept; all others count as one more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import erfc

from benchmarks.papers.experiment import Settings
from nfs_dask.arrays.block import Array
from nfs_dask.solvers.predicted_error.estimate import VARIANCES, ErrorProblem, log_ratio
from nfs_dask.solvers.predicted_error.prefixes import prefix_errors, prefix_moments

N_FEATURES, DIFFERENT, TOKENS = 500, 150, 10
DOCUMENTS = 10_000, 200_000  # of each class: as many as the paper has, and enough to see small differences
TOGETHER = 5_000  # documents that are simulated at once
PRINTED = "as printed"
AS_THEY_STAND = np.arange(N_FEATURES)


def probabilities() -> Array:
    """(2, 500): a wave that differs in the first features, and a hump between 200 and 300 that is the same in both."""
    place = np.arange(N_FEATURES)
    both = 1.0 + 0.6 * np.sin(place / 11)
    both[200:300] += 4 * np.sin(np.pi * (place[200:300] - 200) / 100)
    p = np.stack([both, both])
    wave = np.exp(1.5 * np.sin(2 * np.pi * place[:DIFFERENT] / DIFFERENT))
    p[:, :DIFFERENT] *= [wave, 1 / wave]
    mass = p[:, :DIFFERENT].sum(axis=1, keepdims=True)
    p[:, :DIFFERENT] *= mass.mean() / mass
    return p / p.sum(axis=1, keepdims=True)


def problem() -> ErrorProblem:
    return ErrorProblem.of(probabilities(), TOKENS)


def documents(settings: Settings) -> int:
    """How many are simulated of each class."""
    return int(settings.either(*DOCUMENTS))


def moments(classes: ErrorProblem, true: int, variance: str, order: Array = AS_THEY_STAND) -> tuple[Array, Array]:
    """Predicted means and variances of L_12 under a class with the first 0, 1, ..., 500 features kept, (501,) each."""
    mean, spread = prefix_moments(classes, order, 0, 1, true, "exact" if variance == PRINTED else variance)
    return mean, compensated(classes, true, stray=TOKENS) if variance == PRINTED else spread


def compensated(classes: ErrorProblem, true: int, stray: float = 1) -> Array:
    """Variances by (26), (501,): as it is printed with ``stray`` = m, and as it is meant with 1."""
    p, worth = classes.P[true], log_ratio(classes.P[0], classes.P[1])
    rest = _rest(classes.P)
    p_rest, worth_rest = rest[true], log_ratio(rest[0], rest[1])
    q_rest = 1 - p_rest
    first, second, own = (_sums(terms) for terms in (worth * p, worth**2 * p * (1 - p), p * (1 - p)))
    uncorrelated = second - 2 * p_rest * worth_rest * first + p_rest * q_rest * worth_rest**2
    average = np.divide(first, q_rest, out=np.zeros(len(first)), where=q_rest > 1e-12)
    return np.asarray(TOKENS * (uncorrelated - average**2 * (own - stray * p_rest * q_rest)))


def errors(classes: ErrorProblem, variance: str, order: Array = AS_THEY_STAND) -> Array:
    """Predicted errors with the first 0, 1, ..., 500 features kept, (501,)."""
    if variance != PRINTED:
        return prefix_errors(classes, order, variance)
    wrong = []
    for true, sign in enumerate((1, -1)):
        mean, spread = moments(classes, true, variance, order)
        wrong.append(erfc(sign * mean / np.sqrt(2 * np.maximum(spread, 1e-300))) / 2)
    return np.asarray(np.mean(wrong, axis=0))


def _sums(terms: Array) -> Array:
    """Of the first 0, 1, ... terms."""
    return np.concatenate(([0.0], np.cumsum(terms)))


def _rest(P: Array) -> Array:
    """(2, 501): probabilities of all but the first features."""
    return np.pad(np.cumsum(P[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))


@dataclass(frozen=True)
class Simulated:
    """L_12 of documents of one class, for every number of features, with standard errors."""

    mean: Array  # (501,)
    mean_error: Array
    variance: Array
    variance_error: Array
    wrong: Array  # share of documents decided wrongly

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def worth(classes: ErrorProblem, drawn: Array) -> Array:
    """L_12 of documents (n, 500) with the first 0, 1, ..., 500 features kept, (n, 501)."""
    kept = np.zeros((len(drawn), N_FEATURES + 1))
    np.cumsum(drawn * log_ratio(classes.P[0], classes.P[1]), axis=1, out=kept[:, 1:])
    others = drawn.sum(axis=1, keepdims=True) - np.pad(np.cumsum(drawn, axis=1), ((0, 0), (1, 0)))
    rest = _rest(classes.P)
    return kept + others * log_ratio(rest[0], rest[1])


def draw_documents(
    classes: ErrorProblem, true: int, n: int, rng: np.random.Generator, use: Callable[[Array], None]
) -> None:
    """Hand over documents of a class, some thousands at once."""
    for first in range(0, n, TOGETHER):
        use(rng.multinomial(TOKENS, classes.P[true], min(TOGETHER, n - first)))


def simulate(classes: ErrorProblem, true: int, n: int, rng: np.random.Generator) -> Simulated:
    """Documents of one class. Of classes that are as likely the first is said."""
    about = moments(classes, true, "exact")[0]
    powers, wrong = np.zeros((4, N_FEATURES + 1)), np.zeros(N_FEATURES + 1)

    def add(drawn: Array) -> None:
        values = worth(classes, drawn)
        wrong[:] += (values < 0).sum(axis=0) if true == 0 else (values >= 0).sum(axis=0)
        values -= about
        squares = values * values
        powers[:2] += [values.sum(axis=0), squares.sum(axis=0)]
        powers[2:] += [np.einsum("ij,ij->j", squares, by) for by in (values, squares)]

    draw_documents(classes, true, n, rng, add)
    off, second, third, fourth = powers / n
    variance = second - off**2
    central = fourth - 4 * off * third + 6 * off**2 * second - 3 * off**4
    return Simulated(
        mean=about + off,
        mean_error=np.sqrt(variance / n),
        variance=variance * n / (n - 1),
        variance_error=np.sqrt(np.maximum(central - variance**2, 0) / n),
        wrong=wrong / n,
    )


def both_classes(classes: ErrorProblem, settings: Settings) -> tuple[Simulated, Simulated]:
    rng, n = np.random.default_rng(settings.seed), documents(settings)
    return simulate(classes, 0, n, rng), simulate(classes, 1, n, rng)


def wrong(simulated: tuple[Simulated, Simulated], n: int) -> tuple[Array, Array]:
    """Simulated errors of both classes together, and their standard errors."""
    share = np.mean([one.wrong for one in simulated], axis=0)
    spread = np.sum([one.wrong * (1 - one.wrong) for one in simulated], axis=0) / n
    return share, np.sqrt(spread) / 2


def off_by(found: Array, expected: Array, error: Array) -> Array:
    """Differences in standard errors; those of nothing but rounding are none."""
    apart = np.abs(np.asarray(found) - np.asarray(expected))
    return np.where(apart <= 1e-9, 0.0, apart / np.maximum(error, 1e-300))


ALL_VARIANCES = (*VARIANCES, PRINTED)
