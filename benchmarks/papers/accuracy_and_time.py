"""Experiment 1 of naive feature selection: choose k features in many ways, then classify by these in three ways.

A part is what a way chooses in a split of a set and a kind of vectors, or what one of the classifiers makes of that, so
that a long run may be done in pieces: vectors, smoothing and splits are made once for all parts that follow each other.
Ways that are not linear run in a process of their own, which is ended when its budget is over; the shares it had not
come to are told as taking longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.papers import vectors
from benchmarks.papers.budget import within
from benchmarks.papers.choosers import CHOOSERS, FAST, OURS, Choice
from benchmarks.papers.experiment import Settings, left_out, there
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
def smoothing(settings: Settings, name: str, kind: str, capped: bool, most_rows: int | None) -> float:
    found = vectors.of(settings, name, kind, capped, most_rows)
    return cross_validated(found.X[found.train], found.y[found.train], settings.seed)


@lru_cache(maxsize=1)
def split(settings: Settings, name: str, kind: str, most_rows: int | None, i: int) -> tuple[Any, ...]:
    """Rows and labels that train, and those that judge."""
    found = vectors.of(settings, name, kind, True, most_rows)
    return found.split(vectors.splits(found, i + 1, settings.seed)[i])


def measured(settings: Settings, sets: dict[str, int], kinds: Sequence[str], most_rows: int | None) -> dict[str, Any]:
    """Of each set, with its number of splits, and kind: what all ways found, or why it was left out."""
    return {
        f"{dataset}{BETWEEN}{kind}": together(
            [Split(settings, dataset, kind, i, most_rows).measured() for i in range(n)]
        )
        for dataset, n in sets.items()
        for kind in kinds
    }


Part = dict[str, Any]  # as results keep it
Cell = dict[str, Any]  # of one way and share
Cells = dict[str, dict[str, Cell]]  # by way and share


@dataclass(frozen=True)
class Split:
    """One of a set and kind of vectors."""

    settings: Settings
    dataset: str
    kind: str
    i: int
    most_rows: int | None

    def measured(self) -> Part:
        """Facts, and by way and share what was measured: what there was no time for is not there."""
        name = BETWEEN.join((self.dataset, self.kind, str(self.i)))
        choices = self.settings.each([f"{name}{BETWEEN}{way}" for way in CHOOSERS], self._choose)
        skipped = [found for found in choices.values() if "skipped" in found]
        if skipped:
            return skipped[0]
        pairs = [f"{way}{BETWEEN}{second}" for way in choices for second in SECOND]
        in_turns = sorted(pairs, key=lambda pair: SECOND.index(pair.split(BETWEEN)[-1]))
        judged = there(self.settings.each(in_turns, lambda pair: self._judge(pair, choices)))
        ways = {way.split(BETWEEN)[-1]: self._cells(way, found, judged) for way, found in choices.items()}
        return {**next(iter(choices.values()))["facts"], "budget": self.settings.budget, "ways": ways}

    def _choose(self, name: str) -> Part:
        """Of one way, the choices of all shares."""
        X, y, _, y_test = self._rows()
        way, alpha = name.split(BETWEEN)[-1], self._smoothing()
        ks = {share: max(2, number_to_keep(share, X.shape[1])) for share in SHARES}
        minutes = None if way in FAST else self.settings.budget
        found = {choice.k: choice for choice in within(minutes, chosen, way, X, y, sorted(set(ks.values())), alpha)}
        facts = {"m": X.shape[1], "n": len(y), "judge": len(y_test), "alpha": alpha}
        return {"facts": facts, "shares": {str(share): asdict(found[k]) for share, k in ks.items() if k in found}}

    def _judge(self, pair: str, choices: dict[str, Part]) -> Part:
        """Accuracies of all shares of one way, in one second stage."""
        name, _, second = pair.rpartition(BETWEEN)
        X, y, X_test, y_test = self._rows()
        found = {}
        for share, choice in choices[name]["shares"].items():
            kept, judge = (rows[:, choice["support"]] for rows in (X, X_test))
            found[share] = classifier(second, self._smoothing()).fit(kept, y).score(judge, y_test)
        return found

    def _cells(self, name: str, found: Part, judged: dict[str, Part]) -> dict[str, Cell]:
        cells = {}
        for share, choice in found["shares"].items():
            seconds = {second: judged.get(f"{name}{BETWEEN}{second}", {}).get(share) for second in SECOND}
            facts = {"seconds": choice["seconds"], "search": choice["search"], "n": len(choice["support"])}
            cells[share] = facts | {second: value for second, value in seconds.items() if value is not None}
        return cells

    def _rows(self) -> tuple[Any, ...]:
        return split(self.settings, self.dataset, self.kind, self.most_rows, self.i)

    def _smoothing(self) -> float:
        return smoothing(self.settings, self.dataset, self.kind, True, self.most_rows)


def chosen(way: str, X: Any, y: np.ndarray, ks: Sequence[int], alpha: float) -> Iterator[Choice]:
    """With one thread, so that the processor's time is that of a clock."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the settings of the paper stop solvers early
        yield from CHOOSERS[way](X, y, ks, alpha)


def together(splits: list[Part]) -> Part:
    """All splits that were measured, as one: by way and share, lists of what they say."""
    done = [found for found in splits if "skipped" not in found]
    if not done:
        return splits[0]
    ways = {
        way: {str(share): lists([found["ways"][way].get(str(share)) for found in done]) for share in SHARES}
        for way in CHOOSERS
    }
    return done[0] | {"splits": len(done), "ways": ways}


def lists(cells: list[Cell | None]) -> Cell:
    """Of what all splits have; nothing, if one of them has nothing."""
    there = [cell for cell in cells if cell is not None]
    keys = there[0] if len(there) == len(cells) else ()
    return {key: [cell[key] for cell in there] for key in keys if all(key in cell for cell in there)}


def tables(values: dict[str, Any]) -> str:
    """Of each set and kind: accuracies, and seconds of the choice."""
    return "\n\n".join(one_table(name, found) for name, found in there(values).items()) + "\n" + left_out(values)


def one_table(name: str, found: Part) -> str:
    ways: Cells = found["ways"]
    accuracies = [
        [way, *(shown(cell, second) for second in SECOND for cell in cells.values())] for way, cells in ways.items()
    ]
    seconds = [[way, *(took(cell, found["budget"]) for cell in cells.values())] for way, cells in ways.items()]
    percent = [f"{100 * share:g} %" for share in SHARES]
    head = f"{name}, {found['m']:,} features, {found['splits']} split{'s' * (found['splits'] > 1)}"
    first = markdown([head, *(f"{second}, {share}" for second in SECOND for share in percent)], accuracies)
    return f"{first}\n\n{markdown(['processor seconds of the choice (of the search)', *percent], seconds)}"


def at_one_share(values: dict[str, Any], share: float) -> str:
    """All sets and kinds, a line each: accuracy with naive Bayes in stage two, and seconds of the choice."""
    percent, first, second = f"{100 * share:g} %", [], []
    for name, found in there(values).items():
        cells = [found["ways"][way][str(share)] for way in CHOOSERS]
        first.append([f"{name}, {found['splits']}", *(shown(cell, SECOND[0]) for cell in cells)])
        second.append(
            [name, *(f"{np.median(cell['seconds']):.2g}" if cell else over(found["budget"]) for cell in cells)]
        )
    accuracies = markdown([f"accuracy, {percent}; splits", *CHOOSERS], first)
    return f"{accuracies}\n\n{markdown([f'processor seconds, {percent}', *CHOOSERS], second)}\n{left_out(values)}"


def over(budget: float) -> str:
    return f"over {budget:g} min"


def shown(cell: Cell, second: str) -> str:
    return f"{np.mean(cell[second]):.3f}" if second in cell else ""


def took(cell: Cell, budget: float) -> str:
    if not cell:
        return over(budget)
    seconds, search = np.median(cell["seconds"]), np.median(cell["search"])
    return f"{seconds:.3g}" + (f" ({search:.3g}; {np.mean(cell['n']):,.0f} features)" if search > seconds else "")


def plot(axes: Any, ways: Cells, second: str) -> None:
    """Accuracy against seconds of the choice; a line for each way, whose marks are the shares."""
    looks = styles(CHOOSERS)
    for way, shares in ways.items():
        cells = [cell for cell in shares.values() if second in cell]
        seconds = [np.median(cell["seconds"]) for cell in cells]
        accuracies = [100 * np.mean(cell[second]) for cell in cells]
        axes.plot(seconds, accuracies, **looks[way], linewidth=2.2 if way == OURS else 1.0)
    axes.set(xscale="log", xlabel="processor seconds of the choice", ylabel="accuracy, %")
