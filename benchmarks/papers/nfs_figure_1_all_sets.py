"""Accuracy against run time, all other sets and kinds of vectors: the plots of Appendix D of NFS20, Experiment 1.

As `nfs_figure_1`, with at most 5,000 terms but for counts. MPQA and the Amazon reviews have no published split: theirs
are random ones. Quick: MPQA and SST2, 1,000 texts each.
"""

from __future__ import annotations

from typing import Any

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers.choosers import warm_up
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels
from benchmarks.papers.vectors import KINDS

TITLE = "Accuracy against run time of ten ways to choose features, four kinds of vectors"
SETS = ("mpqa", "amazon", "sst2")
QUICK_SETS, QUICK_ROWS = ("mpqa", "sst2"), 1_000
SPLITS = {"mpqa": 3, "amazon": 1, "sst2": 1}


def run(settings: Settings) -> dict[str, Any]:
    warm_up()
    sets, rows = settings.either((QUICK_SETS, QUICK_ROWS), (SETS, None))

    def part(name: str) -> dict[str, Any]:
        n_splits = 1 if settings.quick else SPLITS[name.split(grid.BETWEEN)[0]]
        return grid.part(settings, name, n_splits, rows)

    return settings.each(grid.names(sets, list(KINDS)), part)


def table(values: dict[str, Any]) -> str:
    return grid.tables(values)


def summary(values: dict[str, Any]) -> str:
    return grid.at_one_share(values, 0.01)


def draw(values: dict[str, Any]) -> Any:
    found = grid.grouped(values)
    figure, axes = panels(len(found) // len(KINDS), len(KINDS), width=3.0, height=2.4)
    for one, (name, ways) in zip(axes.ravel(), found.items(), strict=True):
        grid.plot(one, ways, "naive Bayes")
        one.set_title(name)
    legend(figure, axes[0, 0], columns=5)
    return figure
