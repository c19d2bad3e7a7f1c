"""What the benchmark of newsgroups finds, by way, training set and pair of groups; its tables and a figure.

References: HYB (Raina et al. 2003) Figures 1 and 2.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from scipy.special import expit

from nfs_dask import accuracy_coverage
from nfs_dask.prediction.coverage import Reliability

ALL = "half"  # of the messages: the last training set
SMALL = 100  # messages, and fewer, are a small training set
NEAR = 0.01  # an error so much above the lowest one is near it
ACCURACIES = (0.95, 0.99)  # whose coverage is told


@dataclass(frozen=True)
class Result:
    """How well a classifier did on the messages of one split, or several on average."""

    error: float
    calibration: float  # expected error of posteriors
    accuracy: np.ndarray  # (100,) of the surest 1 %, 2 % ... 100 %
    deviation: float = 0.0  # of the error, among splits

    @classmethod
    def of(cls, model: Any, X: Any, y: np.ndarray) -> Result:
        odds = model.decision_function(X)
        curve = accuracy_coverage(odds, y, classes=model.classes_, at_zero=0)
        calibration = Reliability.of(expit(odds), y, classes=model.classes_).expected_error
        return cls(1 - float(curve.accuracy[-1]), calibration, np.array(curve.to_json()["accuracy"]))

    @classmethod
    def mean(cls, results: Sequence[Result]) -> Result:
        errors = [one.error for one in results]
        accuracy = np.mean([one.accuracy for one in results], axis=0)
        return cls(fmean(errors), fmean(one.calibration for one in results), accuracy, pstdev(errors))

    def coverage(self, accuracy: float) -> float:
        """The largest share that is classified with such an accuracy."""
        enough = np.flatnonzero(self.accuracy >= accuracy - 1e-12)
        return float(enough[-1] + 1) / len(self.accuracy) if len(enough) else 0.0


Cells = dict[tuple[str, str], Result]  # of ways and training sets
Of = Callable[[Result], float]


@dataclass(frozen=True)
class Findings:
    """Results of all ways, sizes and pairs; errors are compared to those of one way."""

    ours: str
    ways: Sequence[str]
    sizes: Sequence[str]
    pairs: dict[str, Cells]

    def print(self, rivals: dict[str, Sequence[str]]) -> None:
        for pair in self.pairs:
            self._print_errors(pair)
        self._print_averages()
        for name, ways in rivals.items():
            self._print_verdict(name, ways)
        for accuracy in ACCURACIES:
            self._print_pairs(
                f"coverage at {accuracy:.0%} accuracy", functools.partial(Result.coverage, accuracy=accuracy), ".2f"
            )
        self._print_pairs("expected calibration error", lambda one: one.calibration, ".3f")

    def _print_errors(self, pair: str) -> None:
        cells = self.pairs[pair]
        rows = {way: [_error(cells[way, size]) for size in self.sizes] for way in self.ways}
        _print_table(f"error, {pair}", self.sizes, rows)

    def _print_averages(self) -> None:
        """Over pairs: errors, by how much others exceed ours and in how many pairs, and calibration."""

        def table(title: str, of: Of) -> None:
            rows = {
                way: [f"{fmean(of(cells[way, size]) for cells in self.pairs.values()):.3f}" for size in self.sizes]
                for way in self.ways
            }
            _print_table(f"{title}, mean of the pairs", self.sizes, rows)

        table("error", lambda one: one.error)
        others = [way for way in self.ways if way != self.ours]
        rows = {way: [self._excess(way, size) for size in self.sizes] for way in others}
        _print_table(f"error less that of {self.ours}, and pairs where it is larger", self.sizes, rows)
        table("expected calibration error", lambda one: one.calibration)

    def _excess(self, way: str, size: str) -> str:
        above = [cells[way, size].error - cells[self.ours, size].error for cells in self.pairs.values()]
        return f"{fmean(above):+.3f}, {sum(one > 0 for one in above)} of {len(above)}"

    def _print_verdict(self, name: str, rivals: Iterable[str]) -> None:
        """Where ours has the lowest error, or nearly so, and where not."""
        small = [size for size in self.sizes if size != ALL and int(size) <= SMALL]
        large = [size for size in self.sizes if size not in small]
        for title, sizes in ((f"{SMALL} messages or fewer", small), ("more messages", large)):
            above, far = [], []
            for (pair, cells), size in itertools.product(self.pairs.items(), sizes):
                error, best = min((cells[way, size].error, way) for way in rivals)
                above.append(cells[self.ours, size].error - error)
                if above[-1] > NEAR:
                    far.append(f"* {pair}, {size}: {above[-1]:.3f} above {best}\n")
            lowest, near = sum(one <= 0 for one in above), sum(0 < one <= NEAR for one in above)
            print(
                f"With {title}, beside {name}: {self.ours} has the lowest error in {lowest} of {len(above)} cases, one "
                f"at most {NEAR} above it in {near}, and neither in {len(far)}.\n"
            )
            print("".join(far))

    def _print_pairs(self, title: str, of: Of, form: str) -> None:
        """With the largest training sets."""
        values = {pair: [of(cells[way, ALL]) for way in self.ways] for pair, cells in self.pairs.items()}
        values["mean"] = [fmean(column) for column in zip(*values.values(), strict=True)]
        rows = {pair: [format(value, form) for value in row] for pair, row in values.items()}
        _print_table(f"{title}, half to train on", self.ways, rows)

    def draw(self, file: Path) -> None:
        """Errors above, accuracy/coverage curves below; a column for each pair."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4 * len(self.pairs), 7), layout="constrained")
        columns = figure.subplots(2, len(self.pairs), squeeze=False).T
        numbers = [int(size) for size in self.sizes if size != ALL]
        for (pair, cells), (upper, lower) in zip(self.pairs.items(), columns, strict=True):
            for way in self.ways:
                upper.plot(numbers, [cells[way, str(number)].error for number in numbers], label=way)
                lower.plot(np.arange(1, 101) / 100, cells[way, ALL].accuracy)
            upper.set(title=pair.replace(" and ", "\n"), xscale="log", xlabel="training messages", ylabel="error")
            lower.set(xlabel="coverage", ylabel="accuracy")
        figure.axes[0].legend(fontsize="small")
        figure.savefig(file, dpi=100)


def _error(one: Result) -> str:
    return f"{one.error:.3f} ± {one.deviation:.3f}"


def _print_table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> None:
    print(f"| {title} |", " | ".join(columns), "|")
    print("| --- |" + " --- |" * len(columns))
    for name, cells in rows.items():
        print(f"| {name} |", " | ".join(cells), "|")
    print()
