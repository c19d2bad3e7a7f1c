"""Run time against the number of features: NFS Figure 2 right, NFS20 Figure 2 right.

IMDB, tf-idf, all 50,000 texts; the terms that are there most often, 10,000 to 80,000 of them, and k = 5 % of that. The
clock runs from rows in memory to the model; the solver alone, and the paper's bisection, start from class totals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import interleaved
from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask import SparseMultinomialNB, TextVectorizer
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.solvers.naive_bayes.multinomial import count, solve

TITLE = "Seconds to choose 5 % of 10,000 to 80,000 features, IMDB, tf-idf"
SIZES = tuple(range(10_000, 80_001, 10_000))
QUICK_ROWS = 10_000
WAYS = ("rows to model", "solver alone", "bisection alone")


def one_size(X: Any, y: np.ndarray, m: int, repeats: int) -> dict[str, float]:
    """Of the m features that are there most often; ``X`` has them first."""
    X, k = X[:, :m].tocsr(), m // 20
    totals = np.stack([np.asarray(X[y == c].sum(axis=0)).ravel() for c in (0, 1)])
    calls = (
        lambda: SparseMultinomialNB(k=k).fit(X, y),
        lambda: solve(count(totals, 1.0), k),
        lambda: bisection.solve(totals, k, alpha=1.0),
    )
    return interleaved(dict(zip(WAYS, calls, strict=True)), repeats) | {"entries": X.nnz}


def run(settings: Settings) -> dict[str, Any]:
    found = texts(settings.data, "imdb")
    rows = np.random.default_rng(settings.seed).permutation(len(found))[: settings.either(QUICK_ROWS, None)]
    words = found.texts[rows]
    often = np.asarray(TextVectorizer().fit_transform(words).sum(axis=0)).ravel()
    X = TextVectorizer(tfidf=True).fit_transform(words).tocsc()[:, np.argsort(-often, kind="stable")]
    sizes = [m for m in SIZES if m <= X.shape[1]]
    one_size(X, found.y[rows], 100, 1)  # compiles
    return {str(m): one_size(X, found.y[rows], m, settings.either(3, 9)) for m in sizes}


def slope(values: dict[str, Any], way: str) -> float:
    """The power of m by which seconds grow."""
    sizes = np.log([int(m) for m in values])
    return float(np.polyfit(sizes, np.log([found[way] for found in values.values()]), 1)[0])


def table(values: dict[str, Any]) -> str:
    rows = [
        [f"{int(m):,}", f"{found['entries']:,}", *(f"{1e3 * found[way]:.1f}" for way in WAYS)]
        for m, found in values.items()
    ]
    powers = ["grows as m to the power", "", *(f"{slope(values, way):.2f}" for way in WAYS)]
    return markdown(["features", "entries", *(f"{way}, ms" for way in WAYS)], [*rows, powers])


def draw(values: dict[str, Any]) -> Any:
    figure, axes = panels(1, 1, width=4.4, height=3)
    sizes = [int(m) / 1000 for m in values]
    for way, look in styles(WAYS).items():
        axes[0, 0].plot(sizes, [1e3 * found[way] for found in values.values()], **look)
    axes[0, 0].set(xlabel="features, thousands (k = 5 %)", ylabel="milliseconds", ylim=(0, None))
    legend(figure, axes[0, 0])
    return figure
