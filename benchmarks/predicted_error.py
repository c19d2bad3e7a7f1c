"""Predicted means, variances and errors of naive Bayes beside simulated ones, as features are added one by one.

    python benchmarks/predicted_error.py [--samples 200000] [--tokens 10] [--seed 0] [--figure FILE.png]

Two classes of 500 features that differ in the first 150, in documents of ten tokens. With the first n features kept,
all others count as one more; L_12 is what speaks for the first class against the second. Tables have, for some n, what
is predicted and what so many documents of each class had, with standard errors:

mean        of L_12 under each class
variance    exact; of features taken for uncorrelated; of these, compensated as if all were worth the same
error       of the normal distributions of these means and variances, beside the share of documents decided wrongly

For every n from 0 to 500, means and exact variances have to be within 4 standard errors of the simulated ones. Errors
need not be: that L_12 is normal is an approximation, which is the better the more tokens and features there are. The
largest differences are printed.

References: ERR section 4, Figures 2 and 4 to 7.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.solvers.predicted_error.estimate import VARIANCES, ErrorProblem, log_ratio
from nfs_dask.solvers.predicted_error.prefixes import prefix_errors, prefix_moments

N_FEATURES, DIFFERENT = 500, 150
SIZES = (1, 5, 20, 50, 100, 150, 200, 300, 400, 500)
TOGETHER = 5_000  # documents that are simulated at once
MOST = 4  # standard errors


def two_classes() -> Array:
    """Probabilities (2, 500): waves that differ in the first features, and a hump that is the same in both."""
    place = np.arange(N_FEATURES)
    both = 1.0 + 0.6 * np.sin(place / 11)
    both[200:300] += 4 * np.sin(np.pi * (place[200:300] - 200) / 100)
    p = np.stack([both, both])
    waves = np.sin(np.pi * place[:DIFFERENT] / 25)
    p[0, :DIFFERENT] *= np.exp(0.9 * waves)
    p[1, :DIFFERENT] *= np.exp(-0.9 * waves)
    mass = p[:, :DIFFERENT].sum(axis=1, keepdims=True)
    p[:, :DIFFERENT] *= mass.mean() / mass
    return p / p.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Moments:
    """Of L_12 under one class, for every number of features: of so many documents, with standard errors."""

    mean: Array  # (501,)
    mean_error: Array
    variance: Array
    variance_error: Array
    wrong: Array  # share of documents decided wrongly


def worth(problem: ErrorProblem, documents: Array) -> Array:
    """L_12 of some documents (n, 500) with the first 0, 1, ..., 500 features kept, (n, 501)."""
    P, n = problem.P, len(documents)
    rest = np.zeros((2, N_FEATURES + 1))
    rest[:, :-1] = np.cumsum(P[:, ::-1], axis=1)[:, ::-1]
    kept = np.zeros((n, N_FEATURES + 1))
    np.cumsum(documents * log_ratio(P[0], P[1]), axis=1, out=kept[:, 1:])
    others = documents.sum(axis=1, keepdims=True) - np.pad(np.cumsum(documents, axis=1), ((0, 0), (1, 0)))
    return kept + others * log_ratio(rest[0], rest[1])


def simulate(problem: ErrorProblem, true: int, n: int, rng: np.random.Generator) -> Moments:
    """Documents of one class. Of classes that are as likely the first is said."""
    tokens, about = int(problem.lengths.mean), predicted(problem, true)[0]
    powers, wrong = np.zeros((4, N_FEATURES + 1)), np.zeros(N_FEATURES + 1)
    for first in range(0, n, TOGETHER):
        values = worth(problem, rng.multinomial(tokens, problem.P[true], min(TOGETHER, n - first)))
        wrong += (values < 0).sum(axis=0) if true == 0 else (values >= 0).sum(axis=0)
        values -= about
        powers += [(values**power).sum(axis=0) for power in (1, 2, 3, 4)]
    off, second, third, fourth = powers / n
    variance = second - off**2
    central = fourth - 4 * off * third + 6 * off**2 * second - 3 * off**4
    return Moments(
        mean=about + off,
        mean_error=np.sqrt(variance / n),
        variance=variance * n / (n - 1),
        variance_error=np.sqrt(np.maximum(central - variance**2, 0) / n),
        wrong=wrong / n,
    )


def predicted(problem: ErrorProblem, true: int, variance: str = "exact") -> tuple[Array, Array]:
    """Means and variances of L_12 under a class, (501,) each."""
    return prefix_moments(problem, np.arange(N_FEATURES), 0, 1, true, variance)


def off_by(found: Array, expected: Array, error: Array) -> Array:
    """Differences in standard errors; those of nothing but rounding are none."""
    apart = np.abs(found - expected)
    return np.where(apart <= 1e-9, 0.0, apart / np.maximum(error, 1e-300))


def check(problem: ErrorProblem, simulated: Sequence[Moments]) -> None:
    """Refuse means and variances that are not those of the simulation."""
    for true, moments in enumerate(simulated):
        mean, variance = predicted(problem, true)
        for what, apart in (
            ("mean", off_by(moments.mean, mean, moments.mean_error)),
            ("variance", off_by(moments.variance, variance, moments.variance_error)),
        ):
            worst = int(apart.argmax())
            print(
                f"{what} under class {true + 1}: at most {apart[worst]:.2f} standard errors off, with {worst} features"
            )
            if apart[worst] > MOST:
                raise SystemExit(f"that is more than {MOST}")


def print_table(title: str, head: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    names = [title, *head]
    print("|", " | ".join(names), "|\n|" + " --- |" * len(names))
    for row in rows:
        print("|", " | ".join(row), "|")
    print()


def print_moments(problem: ErrorProblem, simulated: Sequence[Moments]) -> None:
    for true, moments in enumerate(simulated):
        means = predicted(problem, true)[0]
        variances = [predicted(problem, true, name)[1] for name in VARIANCES]
        rows = [
            (
                f"{n}",
                f"{means[n]:.5f}",
                f"{moments.mean[n]:.5f} ± {moments.mean_error[n]:.5f}",
                *(f"{variance[n]:.5f}" for variance in variances),
                f"{moments.variance[n]:.5f} ± {moments.variance_error[n]:.5f}",
            )
            for n in SIZES
        ]
        head = ("mean", "simulated", *(f"variance, {name}" for name in VARIANCES), "simulated")
        print_table(f"L_12 under class {true + 1}, features", head, rows)


def print_errors(errors: dict[str, Array], wrong: Array, wrong_error: Array) -> None:
    apart = off_by(wrong, errors["exact"], wrong_error)
    rows = [
        (
            f"{n}",
            *(f"{error[n]:.4f}" for error in errors.values()),
            f"{wrong[n]:.4f} ± {wrong_error[n]:.4f}",
            f"{apart[n]:.1f}",
        )
        for n in SIZES
    ]
    head = (*(f"error, {name}" for name in errors), "simulated", "exact, standard errors off")
    print_table("features", head, rows)
    for name, error in errors.items():
        worst = int(np.abs(error - wrong).argmax())
        print(f"error, {name}: at most {abs(error[worst] - wrong[worst]):.4f} off, with {worst} features")
    print(f"error, exact: within {MOST} standard errors for {(apart <= MOST).mean():.0%} of all numbers of features")


def draw(
    file: Path, problem: ErrorProblem, simulated: Sequence[Moments], errors: dict[str, Array], wrong: Array
) -> None:
    """Probabilities, means, variances and errors against the number of features."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 11), layout="constrained")
    (one, two), (three, four), (five, six) = figure.subplots(3, 2)
    for true, moments in enumerate(simulated):
        one.plot(problem.P[true], label=f"class {true + 1}")
        two.plot(predicted(problem, true)[0], label=f"class {true + 1}, predicted")
        two.plot(moments.mean, "k:", label="simulated")
        axes = (three, four)[true]
        for name in VARIANCES:
            axes.plot(predicted(problem, true, name)[1], label=name)
        axes.plot(moments.variance, "k:", label="simulated")
        axes.set(title=f"variance of L_12 under class {true + 1}", xlabel="features")
    one.set(title="probability", xlabel="feature")
    two.set(title="mean of L_12", xlabel="features")
    for name, error in errors.items():
        five.plot(error, label=name)
        six.plot(error - wrong, label=name)
    five.plot(wrong, "k:", label="simulated")
    five.set(title="error", xlabel="features")
    six.set(title="error less the simulated one", xlabel="features")
    for axes in (one, two, three, four, five, six):
        axes.legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200_000, help="documents of each class")
    parser.add_argument("--tokens", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="draw the curves too, which takes matplotlib")
    options = parser.parse_args()
    problem = ErrorProblem.of(two_classes(), options.tokens)
    sample = partial(simulate, problem, n=options.samples, rng=np.random.default_rng(options.seed))
    simulated = [sample(true) for true in range(2)]
    errors = {name: prefix_errors(problem, np.arange(N_FEATURES), name) for name in VARIANCES}
    wrong = np.mean([moments.wrong for moments in simulated], axis=0)
    spread = np.sum([moments.wrong * (1 - moments.wrong) for moments in simulated], axis=0) / options.samples
    print(f"{options.samples:,} documents of {options.tokens} tokens of each class, seed {options.seed}\n")
    print_moments(problem, simulated)
    print_errors(errors, wrong, np.sqrt(spread) / 2)
    check(problem, simulated)
    if options.figure is not None:
        draw(options.figure, problem, simulated, errors, wrong)


if __name__ == "__main__":
    main()
