"""Features added in the order of what they do to the predicted error, instead of as they stand. ERR section 1.

Orders are those of the paper's figures; of the errors that are predicted when each feature is kept alone (best
individual N); of sequential forward selection, which adds the feature that makes the predicted error smallest; and of
the gains of sparse multinomial naive Bayes. For each there are predicted errors and those of simulated documents.
Beside are the smallest predicted errors that other searches find: plus l, take away r; floating; and backward, which
takes away what is missed least, from all features on.

References: ERR sections 1 and 5, which name the searches and show no order but that of the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.papers import two_classes
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask.arrays.block import Array
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem
from nfs_dask.solvers.predicted_error.searches import SearchResult, best_individual, floating, forward, plus_minus

TITLE = "Error against the number of features, in the order of their effect on the predicted error"
SHOWN = (5, 10, 20, 50, 100, 150, 500)
SEARCHED = (20, 50, 100)  # features
SEARCHES: dict[str, Callable[[ErrorProblem, int], SearchResult]] = {
    "forward selection": forward,
    "plus 2, take away 1": lambda classes, k: plus_minus(classes, k, 2, 1),
    "floating": floating,
    "backward": lambda classes, k: plus_minus(classes, k, 0, 1),
}


def gains(P: Array) -> Array:
    """Of each feature in sparse multinomial naive Bayes, where both classes have as many words."""
    return np.asarray((P * np.log(P / P.mean(axis=0))).sum(axis=0))


def orders(classes: ErrorProblem) -> dict[str, Array]:
    """Features from the first to be kept to the last."""
    every = classes.n_features
    alone, added = best_individual(classes, every).order, forward(classes, every).order
    assert alone is not None and added is not None
    by_gain = np.argsort(-gains(classes.P), kind="stable")
    return {
        "as they stand": two_classes.AS_THEY_STAND,
        "best alone first": alone,
        "forward selection": added,
        "largest gain first": by_gain,
    }


def run(settings: Settings) -> dict[str, Any]:
    classes, n = two_classes.problem(), two_classes.documents(settings)
    found = {}
    for name, order in orders(classes).items():
        sorted_classes = ErrorProblem.of(classes.P[:, order], two_classes.TOKENS)
        simulated, error = two_classes.wrong(two_classes.both_classes(sorted_classes, settings), n)
        predicted = two_classes.errors(classes, "exact", order)
        found[name] = {"order": order, "predicted": predicted, "simulated": simulated, "standard error": error}
    searched = {name: {str(k): search(classes, k).error for k in SEARCHED} for name, search in SEARCHES.items()}
    return {"documents": n, "orders": found, "searches": searched}


def enough(simulated: list[float], more: float = 0.01) -> int:
    """The least number of features whose error, and that of all larger numbers, is near that of all of them."""
    far = np.flatnonzero(np.array(simulated) > simulated[-1] + more)
    return int(far[-1]) + 1 if len(far) else 0


def table(values: dict[str, Any]) -> str:
    rows = []
    for name, found in values["orders"].items():
        rows.append([f"{name}, predicted", *(f"{found['predicted'][n]:.4f}" for n in SHOWN), ""])
        simulated = found["simulated"]
        rows.append([f"{name}, simulated", *(f"{simulated[n]:.4f}" for n in SHOWN), enough(simulated)])
    searched = [[name, *(f"{error:.4f}" for error in of.values())] for name, of in values["searches"].items()]
    return (
        markdown(["error, features", *map(str, SHOWN), "features within 0.01 of all"], rows)
        + "\n\n"
        + markdown(["smallest predicted error found, features", *map(str, SEARCHED)], searched)
    )


def draw(values: dict[str, Any]) -> Any:
    figure, ((left, right),) = panels(1, 2, width=4, height=3)
    for name, look in styles(values["orders"], marks=False).items():
        left.plot(values["orders"][name]["predicted"], **look)
        right.plot(values["orders"][name]["simulated"], **look)
    left.set(title="predicted", xlabel="features", ylabel="error", xlim=(0, 200))
    right.set(title="simulated", xlabel="features", ylabel="error", xlim=(0, 200))
    legend(figure, left)
    return figure
