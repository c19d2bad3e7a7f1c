"""Accuracy of the messages a classifier is surest of, by their share: pairs of newsgroups. HYB Figure 2.

Each random split halves the messages of a pair; one half trains and the other judges. Messages are in the order of
their log odds, not of posteriors, of which many are 1.0. Curves are averages over splits, and the words are those of
the training messages.

References: HYB (Raina et al. 2003) section 5, Figure 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks.papers import newsgroups
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask import accuracy_coverage
from nfs_dask.prediction.coverage import Reliability

TITLE = "Accuracy by coverage, pairs of newsgroups, half of the messages to train on"
PAPERS = ("hybrid, R = 1", "naive Bayes", "logistic regression", "hybrid, R = 1, unnormalized")
SHOWN = (*PAPERS, "hybrid, R = 2", "logistic regression, unit rows")
COVERAGE = np.arange(1, 101) / 100


def one_split(messages: newsgroups.Messages, way: str, seed: int) -> tuple[np.ndarray, float]:
    """(100,) accuracies of the surest 1 %, 2 % ... of the judging half, and the calibration error of posteriors."""
    train, test = (messages.only(rows) for rows in newsgroups.halves(messages.y, seed))
    known = np.unique(train.together.indices)
    odds, groups = newsgroups.odds(way, train.knowing(known), test.knowing(known)), np.unique(messages.y)
    curve = accuracy_coverage(odds, test.y, classes=groups)
    calibration = Reliability.of(expit(odds), test.y, classes=groups).expected_error
    return np.array(curve.to_json()["accuracy"]), calibration


def one_pair(name: str, settings: Settings) -> dict[str, Any]:
    messages, splits = newsgroups.pair(settings, name), settings.either(3, 10)
    found = {}
    for way in SHOWN:
        curves, calibrations = zip(
            *(one_split(messages, way, settings.seed + split) for split in range(splits)), strict=True
        )
        found[way] = {"accuracy": np.mean(curves, axis=0), "calibration error": np.mean(calibrations)}
    return {"messages": len(messages.y), "ways": found}


def run(settings: Settings) -> dict[str, Any]:
    names = settings.either(newsgroups.QUICK_PAIRS, tuple(newsgroups.PAIRS))
    with threadpool_limits(1):
        return settings.each(names, lambda name: one_pair(name, settings))


def coverage_at(accuracy: list[float], least: float) -> float:
    """The largest share of the messages that is classified with such an accuracy."""
    enough = np.flatnonzero(np.array(accuracy) >= least - 1e-12)
    return float(COVERAGE[enough[-1]]) if len(enough) else 0.0


def table(values: dict[str, Any]) -> str:
    pairs = {name: found["ways"] for name, found in there(values).items()}
    parts = []
    for least in (0.95, 0.99):
        parts.append(_by_pair(f"coverage at {least:.0%}", pairs, lambda of, at=least: coverage_at(of["accuracy"], at)))
    parts.append(_by_pair("error", pairs, lambda of: 1 - of["accuracy"][-1], ".3f"))
    parts.append(_by_pair("expected calibration error", pairs, lambda of: of["calibration error"], ".3f"))
    return "\n\n".join(parts) + "\n" + left_out(values)


def _by_pair(title: str, pairs: dict[str, Any], of: Any, form: str = ".2f") -> str:
    cells = {name: [of(ways[way]) for way in SHOWN] for name, ways in pairs.items()}
    if cells:
        cells["mean"] = [float(np.mean(column)) for column in zip(*cells.values(), strict=True)]
    return markdown([title, *SHOWN], [[name, *(format(cell, form) for cell in row)] for name, row in cells.items()])


def draw(values: dict[str, Any]) -> Any:
    pairs = there(values)
    columns = 3
    figure, axes = panels(-(-len(pairs) // columns) or 1, columns, width=3, height=2.3)
    for one, (name, found) in zip(axes.flat, pairs.items(), strict=False):
        for way, look in styles(SHOWN, marks=False).items():
            one.plot(COVERAGE, found["ways"][way]["accuracy"], **look)
        one.set(title=name, xlabel="coverage", ylabel="accuracy")
    for one in list(axes.flat)[len(pairs) :]:
        one.axis("off")
    legend(figure, axes[0, 0], columns=3)
    return figure
