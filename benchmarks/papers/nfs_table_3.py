"""Run times of the choice at large scale: NFS Table 3, NFS20 Table 3.

Seconds to choose from the rows in memory, all terms, averages over the shares of Figure 2 left, alpha = 1. For
Twitter, which is not to be had, there are 100,000 real tweets, and a generated set of its size (1.6 million texts,
12.08 million features, 40.5 million entries) for the time alone, which lies in, or is written to, the folder that
--generated names. Bisection is the paper's algorithm in numpy, on class totals that are counted already. Quick: 2,000
texts a set, and 100,000 generated ones of 200,000 features.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cases
from benchmarks.measure import seconds
from benchmarks.papers import vectors
from benchmarks.papers.choosers import warm_up
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.nfs_figure_2_left import QUICK_ROWS, SHARES
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import KINDS, SETS
from nfs_dask import SparseMultinomialNB
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.solvers.naive_bayes import bisection

TITLE = "Seconds to choose features, all terms of five sets, and of a generated set of Twitter's size"
PRINTED = {  # seconds, by kind in the order of KINDS
    "amazon": (0.043, 0.033, 0.68, 0.076),
    "imdb": (0.22, 0.16, 9.38, 0.47),
    "twitter": (1.15, 0.89, 13.25, 4.07),
    "mpqa": (0.0082, 0.0080, 0.024, 0.0084),
    "sst2": (0.037, 0.027, 0.21, 0.082),
}
GENERATED = "generated, in memory"
REPEATS = 3


def of_texts(settings: Settings, name: str) -> dict[str, Any]:
    dataset, kind = name.split(", ")
    found = vectors.of(settings, dataset, kind, False, settings.either(QUICK_ROWS, None))
    X, y, _, _ = found.split(found.train)
    return averages(X, y)


def averages(X: Any, y: np.ndarray) -> dict[str, Any]:
    """Means over the shares, of the median of some repeats each."""
    ks = [max(2, number_to_keep(share, X.shape[1])) for share in SHARES]
    totals = np.stack([np.asarray(X[y == c].sum(axis=0), np.float64).ravel() for c in (0, 1)])
    ways = {
        "ours": lambda k: SparseMultinomialNB(k=k).fit(X, y),
        "bisection alone": lambda k: bisection.solve(totals, k, alpha=1.0),
    }
    times = {way: np.mean([np.median(seconds(partial(call, k), REPEATS)) for k in ks]) for way, call in ways.items()}
    return {"n": X.shape[0], "m": X.shape[1], "entries": X.nnz, **times}


def of_generated(settings: Settings, name: str) -> dict[str, Any]:
    return averages(*in_memory(settings.either("small", "tweets"), settings.generated))


def in_memory(case: str, folder: Path) -> tuple[Any, np.ndarray]:
    """All rows of a generated set."""
    from scipy import sparse

    m = cases.CASES[case].n_features
    blocks = [np.load(path) for path in cases.npz(case, folder)]
    rows = [sparse.csr_array((b["data"], b["indices"], b["indptr"]), shape=(len(b["y"]), m)) for b in blocks]
    return sparse.vstack(rows, format="csr"), np.concatenate([b["y"] for b in blocks])


def run(settings: Settings) -> dict[str, Any]:
    warm_up()
    of_sets = settings.each([f"{dataset}, {kind}" for dataset in SETS for kind in KINDS], partial(of_texts, settings))
    return of_sets | settings.each([GENERATED], partial(of_generated, settings))


def printed(name: str) -> str:
    if name == GENERATED:
        return f"{PRINTED['twitter'][2]} (Twitter)"
    dataset, kind = name.split(", ")
    return str(PRINTED[dataset][list(KINDS).index(kind)])


def table(values: dict[str, Any]) -> str:
    rows = []
    for name, found in there(values).items():
        seconds_of = [f"{found[way]:.4f}" for way in ("ours", "bisection alone")]
        rows.append([name, f"{found['n']:,}", f"{found['m']:,}", printed(name), *seconds_of])
    head = ["set", "texts", "features", "printed, s", "ours, s", "bisection alone, s"]
    return markdown(head, rows) + "\n" + left_out(values)
