"""Supports and objectives beside the paper's algorithm, on every text and gene set; no figure of the papers.

The paper's algorithm is bisection to 1e-10 in plain numpy, and takes the k largest gains at its last point. Counts and
tf-idf of texts, expression of genes (less the least value of each gene, where some are negative); of sets of more than
two classes the largest against the rest. k = 2, 9, 100, and 0.1, 1, 5 and 10 % of the features; alpha = 0 and 1. Gains
are equal where they differ by less than 1e-10 of the bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.datasets import genes, texts
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.figures import panels
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import some
from nfs_dask import TextVectorizer
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.solvers.naive_bayes.multinomial import count, solve

TITLE = "Supports and objectives beside the paper's algorithm, every text and gene set"
TEXTS = (
    *("amazon_mds", "imdb", "mpqa", "newsgroups20", "rt_polarity"),
    *("sst2", "sst2_phrases", "sst5", "trec", "twitter100k"),
)
KINDS = ("counts", "tf-idf")
GENES = ("alon", "chowdary", "golub", "khan", "nakayama", "singh", "west")
KS, SHARES = (2, 9, 100), (0.001, 0.01, 0.05, 0.1)
ALPHAS = (0.0, 1.0)
EQUAL = 1e-10
QUICK_ROWS = 4_000


def sums(X: Any, y: np.ndarray) -> np.ndarray:
    """Of the rest and of the largest class."""
    largest = y == np.bincount(y).argmax()
    return np.stack([np.asarray(X[rows].sum(axis=0)).ravel() for rows in (~largest, largest)])


def of_texts(settings: Settings, name: str) -> np.ndarray:
    dataset, kind = name.split(", ")
    found = texts(settings.data, dataset)
    rows = some(len(found), settings.either(QUICK_ROWS, None), settings.seed)
    return sums(TextVectorizer(tfidf=kind == "tf-idf").fit_transform(found.texts[rows]), found.y[rows])


def of_genes(settings: Settings, name: str) -> np.ndarray:
    found = genes(settings.data, name)
    return sums(found.X - np.minimum(found.X.min(axis=0), 0), found.y)


def cases(totals: np.ndarray) -> list[dict[str, Any]]:
    m = totals.shape[1]
    ks = sorted({k for k in (*KS, *(number_to_keep(share, m) for share in SHARES)) if 1 < k < m})
    return [one_case(totals, k, alpha) for k in ks for alpha in ALPHAS]


def one_case(totals: np.ndarray, k: int, alpha: float) -> dict[str, Any]:
    start = time.perf_counter()
    ours = solve(count(totals, alpha), k)
    between = time.perf_counter()
    theirs = bisection.solve(totals, k, alpha=alpha)
    end = time.perf_counter()
    return {
        "k": k,
        "alpha": alpha,
        "better": (ours.value - theirs.value) / ours.bound,
        "same": bool(np.array_equal(ours.support, theirs.support)),
        "other features": len(np.setdiff1d(ours.support, theirs.support)),
        "our gap": ours.gap / ours.bound,
        "bounds apart": abs(ours.bound - theirs.bound) / ours.bound,
        "ours, s": between - start,
        "theirs, s": end - between,
    }


def run(settings: Settings) -> dict[str, Any]:
    solve(count(np.array([[7, 7, 2], [1, 8, 1]])), 2)  # compiles
    solve(count(np.array([[0.7, 7, 2], [1, 8, 1]])), 2)
    names = [f"{name}, {kind}" for name in TEXTS for kind in KINDS]
    of: dict[str, Callable[[], np.ndarray]] = {name: partial(of_texts, settings, name) for name in names}
    of |= {name: partial(of_genes, settings, name) for name in GENES}

    def one(name: str) -> dict[str, Any]:
        totals = of[name]()
        return {"m": totals.shape[1], "cases": cases(totals)}

    return settings.each(of, one)


def better(found: dict[str, Any], least: int = 0) -> np.ndarray:
    """Our gain less theirs, of the bound, from some k on."""
    return np.array([case["better"] for case in found["cases"] if case["k"] >= least])


def table(values: dict[str, Any]) -> str:
    head = ["set", "features", "cases", "same features", "equal", "ours better", "worse"]
    more_head = ["better by at most, k ≥ 9", "k ≥ 100", "our largest gap, k ≥ 100"]
    rows = []
    for name, found in there(values).items():
        gains, same = better(found), sum(case["same"] for case in found["cases"])
        more, less = int((gains > EQUAL).sum()), int((gains < -EQUAL).sum())
        gap = max(case["our gap"] for case in found["cases"] if case["k"] >= 100)
        largest = [f"{value:.1e}" for value in (better(found, 9).max(), better(found, 100).max(), gap)]
        rows.append([name, f"{found['m']:,}", len(gains), same, len(gains) - more - less, more, less, *largest])
    rows.append(["all", "", *np.array([row[2:7] for row in rows]).sum(axis=0), "", "", ""])
    return markdown([*head, *more_head], rows) + "\n" + left_out(values)


def draw(values: dict[str, Any]) -> Any:
    figure, axes = panels(1, 1, width=6.5, height=3.4)
    found = there(values)
    for i, one in enumerate(found.values()):
        gains = np.maximum(better(one), 1e-16)
        axes[0, 0].plot(np.full(len(gains), i), gains, "o", color="#0072B2", alpha=0.6)
    axes[0, 0].axhline(EQUAL, color="black", linewidth=0.8)
    axes[0, 0].set(yscale="log", ylabel="our gain less theirs, of the bound")
    axes[0, 0].set_xticks(range(len(found)), found, rotation=90, fontsize=6)
    return figure
