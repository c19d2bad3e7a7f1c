"""Accuracy against run time, all other sets and kinds of vectors: the plots of Appendix D of NFS20, Experiment 1.

As `nfs_figure_1`, with at most 5,000 terms but for counts. MPQA and the Amazon reviews have no published split: theirs
are random ones. Quick: MPQA and SST2, 1,000 texts each, one split.
"""

from __future__ import annotations

from typing import Any

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers.choosers import warm_up
from benchmarks.papers.experiment import Settings, there
from benchmarks.papers.figures import legend, panels
from benchmarks.papers.vectors import KINDS

TITLE = "Accuracy against run time of ten ways to choose features, four kinds of vectors"
SPLITS = dict.fromkeys(("mpqa", "amazon", "imdb", "sst2"), 1)
EXPECTED = "in full 36 min of processor for the choices, by what the result adds up to, and stage two besides"
QUICK_SPLITS, QUICK_ROWS = {"mpqa": 1, "sst2": 1}, 1_000
CAPPED = [kind for kind in KINDS if kind != "counts"]  # the counts of IMDB are Figure 1


def run(settings: Settings) -> dict[str, Any]:
    warm_up()
    splits, rows = settings.either((QUICK_SPLITS, QUICK_ROWS), (SPLITS, None))
    found = [
        grid.measured(settings, {dataset: n}, CAPPED if dataset == "imdb" else list(KINDS), rows)
        for dataset, n in splits.items()
    ]
    return {name: one for of_set in found for name, one in of_set.items()}


def table(values: dict[str, Any]) -> str:
    return grid.tables(values)


def summary(values: dict[str, Any]) -> str:
    return grid.at_one_share(values, 0.01)


def draw(values: dict[str, Any]) -> Any:
    found = there(values)
    figure, axes = panels(-(-len(found) // len(KINDS)), len(KINDS), width=3.0, height=2.4)
    for one, (name, of) in zip(axes.ravel(), found.items(), strict=False):
        grid.plot(one, of["ways"], "naive Bayes")
        one.set_title(name)
    for empty in axes.ravel()[len(found) :]:
        empty.axis("off")
    legend(figure, axes[0, 0], columns=5)
    return figure
