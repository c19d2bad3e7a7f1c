"""What the benchmarks of sparse centers share: choices, a classifier of the chosen columns, and tables of both.

References: SC (Calafiore and Fracastoro 2019) section 6: choices in two stages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any, TypeVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
MOST_FITS = 12  # of one search for C
NEAR_ENOUGH = 0.1  # a search ends when the number of features is this near to the wanted one, relatively

T = TypeVar("T")
Cells = dict[str, dict[float, list[T]]]  # of ways and shares of the features; one entry for each split


def data_folder() -> Path:
    """Where the data sets are: NFS_DASK_DATA, or ../shared/data beside the checkout."""
    return Path(os.environ.get("NFS_DASK_DATA", BESIDE))


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    value = function()
    return value, time.perf_counter() - start


@dataclass(frozen=True)
class Split:
    """Rows to train with, and rows to judge by."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @classmethod
    def of(cls, X: Any, y: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> Split:
        train, test = rows
        return cls(X[train], y[train], X[test], y[test])


@dataclass
class Comparison:
    """Ways of choosing features, measured on splits; times are compared to those of the first way."""

    classifier: Callable[[], Any]  # of the chosen columns, the same for all ways
    measure: Callable[[Any, Any], float]  # of labels and predicted labels
    accuracies: Cells[float] = field(default_factory=dict)
    times: Cells[tuple[float, float]] = field(default_factory=dict)  # seconds of the choice, and of training
    numbers: Cells[int] = field(default_factory=dict)  # of features, where they are not the wanted ones

    def chosen(self, way: str, share: float, split: Split, support: np.ndarray, seconds: float) -> float:
        """Train on the columns of a choice that took some seconds. How long that took."""
        model, training = timed(lambda: self.classifier().fit(split.X[:, support], split.y))
        accuracy = self.measure(split.y_test, model.predict(split.X_test[:, support]))
        _append(self.accuracies, way, share, accuracy)
        _append(self.times, way, share, (seconds, training))
        return training

    def alone(self, way: str, share: float, split: Split, selector: Any, seconds: float) -> None:
        """The same for a selector that classifies by itself."""
        _append(self.accuracies, way, share, self.measure(split.y_test, selector.predict(split.X_test)))
        _append(self.times, way, share, (seconds, 0.0))

    def l1_logistic(self, way: str, share: float, split: Split, X: Any, k: int) -> None:
        """Choose by l1 logistic regression on X, the training rows as it shall see them."""
        search = search_l1_logistic(X, split.y, k)
        training = self.chosen(way, share, split, search.support, search.all_fits)
        _append(self.times, f"{way}, C known", share, (search.fit, training))
        _append(self.numbers, way, share, len(search.support))

    def print(self) -> None:
        first = next(iter(self.times.values()))
        base = {share: _total(times) for share, times in first.items()}
        title = self.measure.__name__.removesuffix("_score").replace("_", " ")
        _print(title, self.accuracies, lambda share, found: f"{fmean(found):.3f} ± {pstdev(found):.3f}")
        _print("milliseconds: selection, and with training", self.times, lambda share, times: _milliseconds(times))
        _print("times as long", self.times, lambda share, times: f"{_total(times) / base[share]:.2f}")
        _print("features", self.numbers, lambda share, numbers: f"{fmean(numbers):,.0f}")


def _append(cells: Cells[T], way: str, share: float, value: T) -> None:
    cells.setdefault(way, {}).setdefault(share, []).append(value)


def _total(times: list[tuple[float, float]]) -> float:
    """Seconds of selection and training, the median of the splits."""
    return median(selection + training for selection, training in times)


def _milliseconds(times: list[tuple[float, float]]) -> str:
    return f"{1e3 * median(selection for selection, _ in times):.1f}, {1e3 * _total(times):.1f}"


def _print(title: str, cells: Cells[T], text: Callable[[float, list[T]], str]) -> None:
    shares = next(iter(cells.values())).keys()
    print(f"| {title} |", " | ".join(f"{100 * share:g} %" for share in shares), "|")
    print("| --- |" + " --- |" * len(shares))
    for way, found in cells.items():
        print(f"| {way} |", " | ".join(text(share, values) for share, values in found.items()), "|")
    print()


@dataclass(frozen=True)
class Search:
    """The features of an l1 logistic regression, and the seconds of its fit and of all fits it took to find its C."""

    support: np.ndarray
    fit: float
    all_fits: float


def search_l1_logistic(X: Any, y: np.ndarray, k: int) -> Search:
    """Bisect the logarithm of C, from the least that chooses anything, until about k coefficients are not zero.

    scikit-learn before 1.8 needs ``penalty="l1"`` besides.
    """
    low, high = float(l1_min_c(X, y, loss="log")), np.inf
    C = 4 * low
    found: list[tuple[np.ndarray, float]] = []
    for _ in range(MOST_FITS):
        model = LogisticRegression(C=C, l1_ratio=1, solver="liblinear", max_iter=1000, random_state=0)
        took = timed(partial(model.fit, X, y))[1]
        support = np.flatnonzero(model.coef_)
        found.append((support, took))
        if abs(len(support) - k) <= NEAR_ENOUGH * k:
            break
        low, high = (C, high) if len(support) < k else (low, C)
        C = 4 * low if high == np.inf else float(np.sqrt(low * high))
    nearest, fit = min(found, key=lambda one: abs(len(one[0]) - k))
    return Search(nearest, fit, sum(took for _, took in found))
