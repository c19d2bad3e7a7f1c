"""What the choice gains at large scale, and how much slower it is: NFS Figure 2 left, NFS20 Figure 2 left.

All terms of each set and kind, shares of 0.01, 0.05, 0.1 and 1 %, naive Bayes in stage two. The gain is the accuracy
with our choice less that with thresholded naive Bayes or the odds ratio, in points; the factor is the seconds of our
choice over theirs. chi2 and the odds ratio of both classes are beside, which the paper has not. Random splits of the
shares of the published one; the smoothing is found once for each set and kind. Quick: 2,500 texts to train with a set,
two splits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import MultinomialNB

from benchmarks.papers import vectors
from benchmarks.papers.accuracy_and_time import chosen, lists, smoothing
from benchmarks.papers.choosers import FAST, OURS, warm_up
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import KINDS, SETS
from nfs_dask.methods.number_of_features import number_to_keep

TITLE = "Accuracy gained and time lost beside other fast choices, all terms of five sets"
SHARES = (0.0001, 0.0005, 0.001, 0.01)
OTHERS = tuple(way for way in FAST if way != OURS)
SPLITS = {"amazon": 10, "imdb": 3, "twitter": 3, "mpqa": 30, "sst2": 10}
QUICK_ROWS, QUICK_SPLITS = 2_500, 2


def part(settings: Settings, name: str) -> dict[str, Any]:
    """One split of a set and kind: seconds and accuracies by way and share."""
    dataset, kind, i = name.split(", ")
    rows = settings.either(QUICK_ROWS, None)
    found = vectors.of(settings, dataset, kind, False, rows)
    alpha = smoothing(settings, dataset, kind, False, rows)
    X, y, X_test, y_test = found.split(vectors.splits(found, int(i) + 1, settings.seed)[int(i)])
    ks = {share: max(2, number_to_keep(share, X.shape[1])) for share in SHARES}
    choices = [(way, choice) for way in FAST for choice in chosen(way, X, y, sorted(set(ks.values())), alpha)]
    used = np.unique(np.concatenate([choice.support for _, choice in choices]))  # so that columns are looked for once
    kept, judge = X[:, used], X_test[:, used]
    of_k: dict[str, dict[int, dict[str, float]]] = {way: {} for way in FAST}
    for way, choice in choices:
        at = np.searchsorted(used, choice.support)
        score = MultinomialNB(alpha=alpha).fit(kept[:, at], y).score(judge[:, at], y_test)
        of_k[way][choice.k] = {"seconds": choice.seconds, "accuracy": score}
    ways = {way: {str(share): cells[k] for share, k in ks.items()} for way, cells in of_k.items()}
    return {"m": X.shape[1], "alpha": alpha, "n": X.shape[0], "judge": X_test.shape[0], "ways": ways}


def names(splits: dict[str, int]) -> list[str]:
    return [f"{dataset}, {kind}, {i}" for dataset in SETS for kind in KINDS for i in range(splits[dataset])]


def run(settings: Settings) -> dict[str, Any]:
    warm_up()
    splits = settings.either(dict.fromkeys(SETS, QUICK_SPLITS), SPLITS)
    return condensed(settings.each(names(splits), lambda name: part(settings, name)))


def condensed(values: dict[str, Any]) -> dict[str, Any]:
    """Of each set and kind, lists of what its splits say by way and share, or why it was left out."""
    out: dict[str, list[dict[str, Any]]] = {}
    for name, found in values.items():
        out.setdefault(name.rpartition(", ")[0], []).append(found)
    return {name: together(splits) for name, splits in out.items()}


def together(splits: list[dict[str, Any]]) -> dict[str, Any]:
    done = [found for found in splits if "skipped" not in found]
    if not done:
        return splits[0]
    ways = {
        way: {str(share): lists([found["ways"][way][str(share)] for found in done]) for share in SHARES} for way in FAST
    }
    return done[0] | {"splits": len(done), "ways": ways}


def accuracy(found: dict[str, Any], way: str, share: float) -> float:
    return 100 * float(np.mean(found["ways"][way][str(share)]["accuracy"]))


def factor(found: dict[str, Any], other: str) -> float:
    """Our seconds over theirs, the median over splits of the sum over shares."""

    def seconds(way: str) -> np.ndarray:
        return np.sum([found["ways"][way][str(share)]["seconds"] for share in SHARES], axis=0)

    return float(np.median(seconds(OURS) / seconds(other)))


def table(values: dict[str, Any]) -> str:
    accuracies = [
        [f"{name}, m = {found['m']:,}: {way}", *(f"{accuracy(found, way, share):.1f}" for share in SHARES)]
        for name, found in there(values).items()
        for way in FAST
    ]
    factors = [
        [f"{name}, {found['n']:,} texts", *(f"{factor(found, other):.2f}" for other in OTHERS)]
        for name, found in there(values).items()
    ]
    first = markdown(["accuracy, %", *(f"{100 * share:g} %" for share in SHARES)], accuracies)
    second = markdown(["our seconds over theirs", *OTHERS], factors)
    return f"{first}\n\n{second}\n{left_out(values)}"


def summary(values: dict[str, Any]) -> str:
    """Means over the shares."""
    rows = [
        [
            f"{name}, {found['m']:,} features",
            *(f"{np.mean([accuracy(found, way, share) for share in SHARES]):.1f}" for way in FAST),
            *(f"{factor(found, other):.1f}" for other in OTHERS[:2]),
        ]
        for name, found in there(values).items()
    ]
    return markdown(["accuracy, %, mean of the shares", *FAST, *(f"times as long as {o}" for o in OTHERS[:2])], rows)


def draw(values: dict[str, Any]) -> Any:
    found = there(values)
    figure, axes = panels(2, 2, width=4.4)
    looks = styles([f"{100 * share:g} %" for share in SHARES])
    for column, other in zip(axes.T, ("thresholded naive Bayes", "odds ratio of both classes"), strict=True):
        for share, look in zip(SHARES, looks.values(), strict=True):
            gains = [accuracy(one, OURS, share) - accuracy(one, other, share) for one in found.values()]
            column[0].plot(gains, **{**look, "linestyle": "none"})
        column[0].axhline(0, color="black", linewidth=0.8)
        column[0].set(title=f"beside {other}", ylabel="points gained")
        column[0].set_xticks(range(len(found)), [])
        column[1].bar(range(len(found)), [factor(one, other) for one in found.values()], color="#0072B2")
        column[1].axhline(1, color="black", linewidth=0.8)
        column[1].set(ylabel="times as long")
        column[1].set_xticks(range(len(found)), found, rotation=90, fontsize=6)
    legend(figure, axes[0, 0])
    return figure
