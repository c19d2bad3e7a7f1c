"""Accuracy against run time, IMDB, counts of words: NFS Figure 1 (NFS20 Figure 1).

Stage one chooses 0.1, 1, 5 and 10 % of the words; marks along a line are these shares. Stage two is multinomial naive
Bayes as in the printed figure, then logistic regression and a linear SVM. The smoothing is that of ten-fold
cross-validation, in both stages. chi2 and the odds ratio of both classes are not in the paper. Quick: 3,000 reviews.
"""

from __future__ import annotations

from typing import Any

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers.choosers import warm_up
from benchmarks.papers.experiment import Settings, there
from benchmarks.papers.figures import legend, panels

TITLE = "Accuracy against run time of ten ways to choose words of IMDB"
QUICK_ROWS = 3_000


def run(settings: Settings) -> dict[str, Any]:
    warm_up()
    return grid.measured(settings, {"imdb": 1}, ["counts"], settings.either(QUICK_ROWS, None))


def table(values: dict[str, Any]) -> str:
    return grid.tables(values)


def draw(values: dict[str, Any]) -> Any:
    figure, axes = panels(1, 3)
    ways = next(iter(there(values).values()))["ways"]
    for one, second in zip(axes[0], grid.SECOND, strict=True):
        grid.plot(one, ways, second)
        one.set_title(f"then {second}")
    legend(figure, axes[0, 0], columns=5)
    return figure
