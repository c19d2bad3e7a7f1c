"""Experiments of SC: random splits, ways to choose features, and a linear SVM of what was chosen.

A part is a set and a split of it, so that a long run may be done in pieces. All ways of a split take turns on the same
rows; each is asked for every share of the features.

References: SC section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.papers.choosers import Choice, Chooser, eliminated, logistic
from benchmarks.papers.experiment import left_out, there
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask.methods.number_of_features import number_to_keep

ALPHA = 1.0  # smoothing of what smooths
SPLIT = ", split "  # between the parts of a name
ALONE = " alone"  # ends the name of a way that classifies by itself

Choices = Callable[[Any, np.ndarray, Sequence[int]], list[Choice]]  # for each of several k, of rows and labels


@dataclass(frozen=True)
class Way:
    """How features are chosen, and from which form of the rows."""

    choose: Choices
    form: str = "counts"
    most_rows: bool = False  # it never keeps more features than there are rows
    alone: Callable[[int], Any] | None = None  # the classifier of k features that it is itself


def one_by_one(choose: Chooser) -> Choices:
    """A way that is asked for each k anew."""
    return lambda X, y, ks: [choice for k in ks for choice in choose(X, y, [k], ALPHA)]


def together(choose: Chooser) -> Choices:
    """A way that is asked for all k at once."""

    def choices(X: Any, y: np.ndarray, ks: Sequence[int]) -> list[Choice]:
        found = {choice.k: choice for choice in choose(X, y, ks, ALPHA)}
        return [found[k] for k in ks]

    return choices


ELIMINATED = together(eliminated(logistic))


@dataclass(frozen=True)
class Split:
    """Rows of one split, in several forms; those that judge only as the classifier sees them."""

    forms: dict[str, Any]  # of the rows that train
    y: np.ndarray
    X: Any  # as the classifier sees them
    X_test: Any
    y_test: np.ndarray
    plain_test: Any  # rows that judge, as they come, for what is a classifier by itself


@dataclass(frozen=True)
class Experiment:
    """What all splits of a set have in common."""

    ways: dict[str, Way]
    classifier: Callable[[], Any]
    measure: Callable[[Any, Any], float]  # of labels and predicted labels

    def split(self, rows: Split, shares: Sequence[float]) -> dict[str, Any]:
        """By way and share: accuracy, seconds, and how many features were chosen."""
        found = {}
        for name, way in self.ways.items():
            X = rows.forms[way.form]
            wanted = [number_to_keep(share, X.shape[1]) for share in shares]
            ks = [min(k, X.shape[0]) for k in wanted] if way.most_rows else wanted
            choices = way.choose(X, rows.y, ks)
            found[name] = {str(share): self._judge(rows, one) for share, one in zip(shares, choices, strict=True)}
            if way.alone is not None:
                alone = [self._alone(way.alone(k), X, rows) for k in ks]
                found[f"{name}{ALONE}"] = dict(zip(map(str, shares), alone, strict=True))
        return found

    def _alone(self, model: Any, X: Any, rows: Split) -> dict[str, float]:
        start = process_time()
        model.fit(X, rows.y)
        took = process_time() - start
        accuracy = self.measure(rows.y_test, model.predict(rows.plain_test))
        return {
            "accuracy": accuracy,
            "seconds": took,
            "search": took,
            "training": 0.0,
            "n": int(model.get_support().sum()),
        }

    def _judge(self, rows: Split, choice: Choice) -> dict[str, float]:
        kept, judged = rows.X[:, choice.support], rows.X_test[:, choice.support]
        start = process_time()
        model = self.classifier().fit(kept, rows.y)
        training = process_time() - start
        accuracy = self.measure(rows.y_test, model.predict(judged))
        return {
            "accuracy": accuracy,
            "seconds": choice.seconds,
            "search": choice.search,
            "training": training,
            "n": len(choice.support),
        }


def splits(y: np.ndarray, n: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train with and to judge by: four fifths and a fifth of each class."""
    return list(StratifiedShuffleSplit(n, test_size=0.2, random_state=seed).split(y, y))


def names(n_splits: dict[str, int]) -> list[str]:
    return [f"{name}{SPLIT}{i}" for name, n in n_splits.items() for i in range(n)]


def named(name: str) -> tuple[str, int]:
    """The set and the number of the split."""
    dataset, i = name.split(SPLIT)
    return dataset, int(i)


Cell = dict[str, Any]  # of all splits: accuracies, and medians of what else there is
Cells = dict[str, dict[str, Cell]]  # by way and share


def condensed(values: dict[str, Any]) -> dict[str, Any]:
    """Of each set: what all of its splits say by way and share, or why it was left out."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, found in values.items():
        parts.setdefault(named(name)[0], []).append(found)
    return {name: found[0] if "skipped" in found[0] else _together(found) for name, found in parts.items()}


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    ways: dict[str, dict[str, Cell]] = {}
    for way, shares in parts[0]["ways"].items():  # what only some splits have is in the first
        of = [part["ways"][way] for part in parts if way in part["ways"]]
        ways[way] = {share: _cell([one[share] for one in of]) for share in shares}
    return {"n": parts[0]["n"], "m": parts[0]["m"], "splits": len(parts), "ways": ways}


def _cell(found: list[dict[str, float]]) -> Cell:
    medians = {key: float(np.median([one[key] for one in found])) for key in ("seconds", "search", "training", "n")}
    return medians | {"accuracy": [one["accuracy"] for one in found]}


def tables(values: dict[str, Any], measure: str) -> str:
    """Of each set: accuracies, milliseconds, and how many features were chosen where these are not those wanted."""
    parts = []
    for name, found in there(values).items():
        parts += _two_tables(name, found, measure)
        parts.append(_table("features, where they are searched for", dict(_searched(found["ways"])), _features))
    return "\n\n".join(parts) + "\n" + left_out(values)


def short_tables(values: dict[str, Any], measure: str) -> str:
    """Of each set: accuracies and milliseconds."""
    parts = [one for name, found in there(values).items() for one in _two_tables(name, found, measure)]
    return "\n\n".join(parts) + "\n" + left_out(values)


def _two_tables(name: str, found: dict[str, Any], measure: str) -> list[str]:
    return [
        _table(f"{name}, {found['splits']} splits: {measure}", found["ways"], _accuracy),
        _table(f"{name}, milliseconds: the choice (with the search); the SVM", _choosers(found), _milliseconds),
    ]


def _choosers(found: dict[str, Any]) -> Cells:
    return {way: cells for way, cells in found["ways"].items() if not way.endswith(ALONE)}


def _table(title: str, ways: Cells, text: Callable[[Cell], str]) -> str:
    shares = list(next(iter(ways.values()))) if ways else []
    rows = [[_with_splits(way, ways), *(text(cells[share]) for share in shares)] for way, cells in ways.items()]
    return markdown([title, *(f"{100 * float(share):g} %" for share in shares)], rows)


def _with_splits(way: str, ways: Cells) -> str:
    """The name of a way, and of how many splits it is where others have more."""
    numbers = {name: len(next(iter(cells.values()))["accuracy"]) for name, cells in ways.items()}
    return way if numbers[way] == max(numbers.values()) else f"{way} ({numbers[way]} splits)"


def _accuracy(cell: Cell) -> str:
    return f"{np.mean(cell['accuracy']):.3f} ± {np.std(cell['accuracy']):.3f}"


def _milliseconds(cell: Cell) -> str:
    seconds, search, training = (1e3 * cell[key] for key in ("seconds", "search", "training"))
    return f"{seconds:,.3g}" + (f" ({search:,.3g})" if search > seconds else "") + f"; {training:,.3g}"


def _features(cell: Cell) -> str:
    return f"{cell['n']:,.0f}"


def _searched(ways: Cells) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Ways that do not always choose as many as others do."""
    first = next(iter(ways.values()))
    for way, cells in ways.items():
        if any(cells[share]["n"] != first[share]["n"] for share in cells):
            yield way, cells


def picture(values: dict[str, Any], measure: str) -> Any:
    """A row for each set: accuracy and seconds of the choice, against the share of the features."""
    sets = there(values)
    figure, axes = panels(len(sets) or 1, 2, width=4, height=2.7)
    for (left, right), (name, found) in zip(axes, sets.items(), strict=False):
        for way, look in styles(_choosers(found)).items():
            cells = found["ways"][way]
            percent = [100 * float(share) for share in cells]
            left.plot(percent, [np.mean(cell["accuracy"]) for cell in cells.values()], **look)
            right.plot(percent, [cell["seconds"] for cell in cells.values()], **look)
        for one in (left, right):
            one.set(title=name, xscale="log", xlabel="features, %")
            one.set_xticks(percent, [f"{share:g}" for share in percent])
            one.minorticks_off()
        left.set_ylabel(measure)
        right.set(ylabel="seconds of the choice", yscale="log")
    legend(figure, max((left for left, _ in axes), key=lambda one: len(one.lines)))
    return figure
