"""Experiment 1 of naive feature selection: choose k features in many ways, then classify by these in three ways.

A part is a set, a kind of vectors, a way and a share of the features, so that a long run may be done in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from benchmarks.papers import vectors
from benchmarks.papers.choosers import CHOOSERS, OURS
from benchmarks.papers.experiment import Settings, there
from benchmarks.papers.figures import styles
from benchmarks.papers.smoothing import cross_validated
from benchmarks.papers.tables import markdown
from nfs_dask.methods.number_of_features import number_to_keep

SHARES = (0.001, 0.01, 0.05, 0.1)
SECOND = ("naive Bayes", "logistic", "SVM")
BETWEEN = ", "  # parts of a name


def classifier(name: str, alpha: float) -> Any:
    if name == "naive Bayes":
        return MultinomialNB(alpha=alpha)
    if name == "logistic":
        return LogisticRegression(C=1e4, solver="lbfgs", max_iter=100)
    return LinearSVC(C=1e4, random_state=0)


@lru_cache(maxsize=1)
def smoothing(settings: Settings, name: str, kind: str, most_rows: int | None) -> float:
    found = vectors.of(settings, name, kind, True, most_rows)
    return cross_validated(found.X[found.train], found.y[found.train], settings.seed)


def part(settings: Settings, name: str, n_splits: int, most_rows: int | None) -> dict[str, Any]:
    """All splits of one set, kind, way and share."""
    dataset, kind, way, share = name.split(BETWEEN)
    found = vectors.of(settings, dataset, kind, True, most_rows)
    alpha = smoothing(settings, dataset, kind, most_rows)
    k = max(2, number_to_keep(float(share), found.X.shape[1]))
    rows = [one_split(way, k, alpha, *found.split(train)) for train in vectors.splits(found, n_splits, settings.seed)]
    return {"m": found.X.shape[1], "k": k, "alpha": alpha, **{key: [row[key] for row in rows] for key in rows[0]}}


def one_split(way: str, k: int, alpha: float, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    choice = CHOOSERS[way](X, y, k, alpha)
    kept, judged = X[:, choice.support], X_test[:, choice.support]
    accuracies = {name: classifier(name, alpha).fit(kept, y).score(judged, y_test) for name in SECOND}
    return {"seconds": choice.seconds, "search": choice.search, "n": len(choice.support), **accuracies}


def names(sets: Sequence[str], kinds: Sequence[str], ways: Sequence[str] = tuple(CHOOSERS)) -> list[str]:
    return [BETWEEN.join((s, d, w, str(a))) for s in sets for d in kinds for w in ways for a in SHARES]


def grouped(values: dict[str, Any]) -> dict[str, dict[str, dict[float, dict[str, Any]]]]:
    """By set and kind, then way, then share."""
    out: dict[str, dict[str, dict[float, dict[str, Any]]]] = {}
    for name, found in there(values).items():
        dataset, kind, way, share = name.split(BETWEEN)
        out.setdefault(f"{dataset}{BETWEEN}{kind}", {}).setdefault(way, {})[float(share)] = found
    return out


def tables(values: dict[str, Any]) -> str:
    """Of each set and kind: accuracies, and seconds of the choice."""
    return "\n\n".join(one_table(name, ways) for name, ways in grouped(values).items())


def one_table(name: str, ways: dict[str, dict[float, dict[str, Any]]]) -> str:
    accuracies = [
        [way, *(shown(one, second) for second in SECOND for one in in_order(found))] for way, found in ways.items()
    ]
    seconds = [[way, *map(took, in_order(found))] for way, found in ways.items()]
    percent = [f"{100 * share:g} %" for share in SHARES]
    first = markdown([name, *(f"{second}, {share}" for second in SECOND for share in percent)], accuracies)
    return f"{first}\n\n{markdown(['seconds of the choice (of the search)', *percent], seconds)}"


def at_one_share(values: dict[str, Any], share: float) -> str:
    """All sets and kinds, a line each: accuracy with naive Bayes in stage two, and seconds of the choice."""
    found = {name: {way: cells[share] for way, cells in ways.items()} for name, ways in grouped(values).items()}
    first = [[name, *(shown(one, SECOND[0]) for one in ways.values())] for name, ways in found.items()]
    second = [[name, *(f"{np.median(one['seconds']):.2g}" for one in ways.values())] for name, ways in found.items()]
    head = next(iter(found.values()))
    percent = f"{100 * share:g} %"
    accuracies, seconds = (
        markdown([f"accuracy, {percent}", *head], first),
        markdown([f"seconds, {percent}", *head], second),
    )
    return f"{accuracies}\n\n{seconds}"


def in_order(found: dict[float, dict[str, Any]]) -> list[dict[str, Any]]:
    return [found[share] for share in sorted(found)]


def shown(found: dict[str, Any], second: str) -> str:
    return f"{np.mean(found[second]):.3f}"


def took(found: dict[str, Any]) -> str:
    seconds, search = np.median(found["seconds"]), np.median(found["search"])
    return f"{seconds:.3g}" + (f" ({search:.3g}; {np.mean(found['n']):,.0f} features)" if search > seconds else "")


def plot(axes: Any, ways: dict[str, dict[float, dict[str, Any]]], second: str) -> None:
    """Accuracy against seconds of the choice; a line for each way, whose marks are the shares."""
    looks = styles(CHOOSERS)
    for way, found in ways.items():
        seconds = [np.median(found[share]["seconds"]) for share in sorted(found)]
        accuracies = [100 * np.mean(found[share][second]) for share in sorted(found)]
        width = 2.2 if way == OURS else 1.0
        axes.plot(seconds, accuracies, **looks[way], linewidth=width)
    axes.set(xscale="log", xlabel="seconds of the choice", ylabel="accuracy, %")
