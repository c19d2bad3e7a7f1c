"""How often sparse multinomial naive Bayes is ahead, level or behind, by sparsity, beside each other way.

No figure of the papers: it counts what Figure 1, Figure 2 left and the plots of Appendix D found, whose results lie in
the folder of results. A case is a set, a kind of vectors and a share of the features. Level is a difference of at most
one standard error of an accuracy: sqrt(p (1 - p) / n), with n the texts that judge in any split. What a way had no time
for is no case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers import nfs_figure_2_left, results
from benchmarks.papers.choosers import CHOOSERS, FAST, OURS
from benchmarks.papers.experiment import Missing, Settings, there
from benchmarks.papers.tables import markdown

TITLE = "Cases where sparse multinomial naive Bayes is ahead, level or behind, by sparsity"
ALL_TERMS, TWO_STAGES = "nfs-figure-2-left", ("nfs-figure-1", "nfs-figure-1-all-sets")
AHEAD, LEVEL, BEHIND = range(3)

Counts = dict[str, dict[str, list[int]]]  # cases ahead, level and behind, by way and share


def standing(ours: float, other: float, n: int) -> int:
    error = math.sqrt(ours * (1 - ours) / n)
    return LEVEL if abs(ours - other) <= error else AHEAD if ours > other else BEHIND


def texts(found: dict[str, Any]) -> int:
    """That judge in any split of a set and kind: all there are, once there are enough splits."""
    return int(min(found["n"] + found["judge"], found["splits"] * found["judge"]))


def counts(cases: list[dict[str, Any]], measure: str) -> Counts:
    """Over all sets and kinds."""
    out: Counts = {}
    for found in cases:
        n = texts(found)
        for way, share, ours, other in pairs(found["ways"], measure):
            out.setdefault(way, {}).setdefault(share, [0, 0, 0])[standing(ours, other, n)] += 1
    return out


def pairs(ways: dict[str, Any], measure: str) -> Iterator[tuple[str, str, float, float]]:
    """Of each other way and share: our accuracy, and its."""
    for way, shares in ways.items():
        for share, cell in shares.items():
            if way != OURS and measure in cell and measure in ways[OURS][share]:
                yield way, share, float(np.mean(ways[OURS][share][measure])), float(np.mean(cell[measure]))


def run(settings: Settings) -> dict[str, Any]:
    found = {name: result(settings, name) for name in (ALL_TERMS, *TWO_STAGES)}
    cases = {name: list(there(one["values"]).values()) for name, one in found.items()}
    staged = [case for name in TWO_STAGES for case in cases[name]]
    return {
        "of": {name: one["command"] for name, one in found.items()},
        "all terms": counts(cases[ALL_TERMS], "accuracy"),
        "two stages": {second: counts(staged, second) for second in grid.SECOND},
    }


def result(settings: Settings, name: str) -> dict[str, Any]:
    file = settings.results_folder and settings.results_folder / f"{name}.json"
    if not file or not file.exists():
        raise Missing(f"there is no result of {name} to count")
    return dict(results.read(file))


def cells(counted: dict[str, list[int]], shares: tuple[float, ...]) -> list[str]:
    return [" / ".join(map(str, counted.get(str(share), [0, 0, 0]))) for share in shares]


def table(values: dict[str, Any]) -> str:
    counted = ", ".join(f"`{command}`" for command in values["of"].values())
    return f"{of_all_terms(values)}\n\n{of_two_stages(values)}\n\nCounted from what these found: {counted}."


def of_all_terms(values: dict[str, Any]) -> str:
    shares = nfs_figure_2_left.SHARES
    head = ["all terms, naive Bayes: ahead / level / behind", *(f"{100 * share:g} %" for share in shares)]
    return markdown(head, [[way, *cells(values["all terms"][way], shares)] for way in FAST if way != OURS])


def of_two_stages(values: dict[str, Any]) -> str:
    head = [f"{second}, {100 * share:g} %" for second in grid.SECOND for share in grid.SHARES]
    rows = [
        [
            way,
            *(cell for second in grid.SECOND for cell in cells(values["two stages"][second].get(way, {}), grid.SHARES)),
        ]
        for way in CHOOSERS
        if way != OURS
    ]
    return markdown(["two stages: ahead / level / behind", *head], rows)
