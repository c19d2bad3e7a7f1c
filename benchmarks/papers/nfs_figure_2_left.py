"""What the choice gains at large scale, and how much slower it is: NFS Figure 2 left, NFS20 Figure 2 left.

All terms of each set and kind, shares of 0.01, 0.05, 0.1 and 1 %, naive Bayes in stage two. The gain is the accuracy
with our choice less that with thresholded naive Bayes or the odds ratio, in points; the factor is the seconds of our
choice over theirs. chi2 and the odds ratio of both classes are beside, which the paper has not. Random splits of the
shares of the published one; the smoothing is found once for each set and kind. Quick: 2,500 texts to train with a set,
two splits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.naive_bayes import MultinomialNB

from benchmarks.papers import vectors
from benchmarks.papers.choosers import FAST, OURS, warm_up
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.smoothing import cross_validated
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import KINDS, SETS
from nfs_dask.methods.number_of_features import number_to_keep

TITLE = "Accuracy gained and time lost beside other fast choices, all terms of five sets"
SHARES = (0.0001, 0.0005, 0.001, 0.01)
OTHERS = tuple(way for way in FAST if way != OURS)
SPLITS = {"imdb": 2, "twitter": 3, "amazon": 5, "mpqa": 10, "sst2": 5}
QUICK_ROWS, QUICK_SPLITS = 2_500, 2


@lru_cache(maxsize=1)
def smoothing(settings: Settings, name: str, kind: str, rows: int | None) -> float:
    found = vectors.of(settings, name, kind, False, rows)
    return cross_validated(found.X[found.train], found.y[found.train], settings.seed)


def part(settings: Settings, name: str) -> dict[str, Any]:
    """One set and kind: seconds and accuracies by way and share, an entry for each split."""
    dataset, kind = name.split(", ")
    rows = settings.either(QUICK_ROWS, None)
    found = vectors.of(settings, dataset, kind, False, rows)
    alpha = smoothing(settings, dataset, kind, rows)
    out: dict[str, Any] = {"m": found.X.shape[1], "alpha": alpha, "n": int(found.train.sum()), "ways": {}}
    for train in vectors.splits(found, settings.either(QUICK_SPLITS, SPLITS[dataset]), settings.seed):
        X, y, X_test, y_test = found.split(train)
        for share in SHARES:
            k = max(2, number_to_keep(share, X.shape[1]))
            for way, choose in FAST.items():
                choice = choose(X, y, k, alpha)
                model = MultinomialNB(alpha=alpha).fit(X[:, choice.support], y)
                cells = out["ways"].setdefault(way, {}).setdefault(str(share), {"seconds": [], "accuracy": []})
                cells["seconds"].append(choice.seconds)
                cells["accuracy"].append(model.score(X_test[:, choice.support], y_test))
    return out


def run(settings: Settings) -> dict[str, Any]:
    names = [f"{dataset}, {kind}" for dataset in SETS for kind in KINDS]
    warm_up()
    return settings.each(names, lambda name: part(settings, name))


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
