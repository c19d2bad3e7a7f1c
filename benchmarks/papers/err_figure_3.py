"""The likelihoods of both classes, when documents are of the first: how normal they are. ERR Figures 2 and 3.

The first 200 of 500 features are kept, documents have ten tokens; L(x|c) is the log likelihood of class c up to what
both classes share. Beside histograms there are the normal distributions of the exact means and variances. The last
column of the table has the largest distance of the two distribution functions.

References: ERR section 4.1, Figures 2 and 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.papers import two_classes
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import COLORS, panels
from benchmarks.papers.tables import markdown
from nfs_dask.arrays.block import Array
from nfs_dask.solvers.predicted_error.estimate import estimate

TITLE = "Likelihoods of both classes, documents of the first: simulated, and the normal distribution predicted"
KEPT = 200
BINS = 60


def likelihoods(P: Array, documents: Array) -> Array:
    """(2, n): log likelihoods of documents by class, with the first features kept and all others counted as one."""
    kept = documents[:, :KEPT]
    others = documents[:, KEPT:].sum(axis=1)
    return np.asarray([kept @ np.log(p[:KEPT]) + others * np.log(p[KEPT:].sum()) for p in P])


def distance_to_normal(values: Array, mean: float, variance: float) -> float:
    """Largest difference of the distribution functions, also just before a step."""
    steps, often = np.unique(values, return_counts=True)
    upto = np.cumsum(often) / len(values)
    normal = ndtr((steps - mean) / np.sqrt(variance))
    return float(max(np.abs(upto - normal).max(), np.abs(upto - often / len(values) - normal).max()))


def run(settings: Settings) -> dict[str, Any]:
    classes, n = two_classes.problem(), two_classes.documents(settings)
    drawn = np.random.default_rng(settings.seed).multinomial(two_classes.TOKENS, classes.P[0], n)
    values = likelihoods(classes.P, drawn)
    predicted = estimate(classes, np.arange(KEPT))
    found = {}
    for r, of in enumerate(values):
        mean, variance = predicted.class_mean[r, 0], predicted.class_variance[r, 0]
        density, edges = np.histogram(of, BINS, density=True)
        found[f"class {r + 1}"] = {
            "mean": mean,
            "variance": variance,
            "simulated mean": of.mean(),
            "mean's standard error": of.std() / np.sqrt(n),
            "simulated variance": of.var(ddof=1),
            "distance to normal": distance_to_normal(of, mean, variance),
            "density": density,
            "edges": edges,
        }
    first, second = values
    return {
        "documents": n,
        "probabilities": classes.P,
        "likelihoods": found,
        "documents of class 1 decided wrongly": (first < second).mean(),
        "if likelihoods were independent": _below(first, second),
    }


def _below(first: Array, second: Array) -> float:
    """How often one of the first values is below one of the second, whatever they belong to."""
    return float(np.searchsorted(np.sort(first), second, side="left").mean() / len(first))


def table(values: dict[str, Any]) -> str:
    columns = ("mean", "simulated mean", "variance", "simulated variance", "distance to normal")
    rows = [[f"of {name}", *(f"{found[key]:.3f}" for key in columns)] for name, found in values["likelihoods"].items()]
    last = (
        f"\n\n{values['documents']:,} documents of class 1. Decided wrongly: "
        f"{values['documents of class 1 decided wrongly']:.4f}; if the two likelihoods were independent: "
        f"{values['if likelihoods were independent']:.4f}."
    )
    return markdown(["log likelihood", *columns], rows) + last


def draw(values: dict[str, Any]) -> Any:
    figure, ((left, right),) = panels(1, 2, width=4.2, height=3.2)
    for c, (p, color) in enumerate(zip(values["probabilities"], COLORS, strict=False)):
        left.plot(p, color=color, linestyle=("-", "--")[c], label=f"class {c + 1}")
    left.set(title="probabilities of the two classes", xlabel="feature", ylabel="probability")
    for (name, found), color in zip(values["likelihoods"].items(), COLORS, strict=False):
        right.stairs(found["density"], found["edges"], fill=True, color=color, alpha=0.35)
        x = np.linspace(found["edges"][0], found["edges"][-1], 300)
        normal = np.exp(-((x - found["mean"]) ** 2) / (2 * found["variance"])) / np.sqrt(2 * np.pi * found["variance"])
        right.plot(x, normal, color=color, label=f"log likelihood of {name}")
    right.set(title="bars: simulated; lines: predicted", xlabel="log likelihood", ylabel="density")
    for axes in (left, right):
        axes.legend()
    return figure
