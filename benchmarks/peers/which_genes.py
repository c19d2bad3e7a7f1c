"""Which k genes: those of each way beside those of Mahalanobis centers, on all samples of a set.

Of each k: how many of the genes are those of Mahalanobis centers, and what they gain in the cost of Mahalanobis
centers, of l2 centers and of l1 centers, each in per cent of what the best k genes gain, which is known exactly.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.papers import datasets
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.peers import ways_of_genes
from benchmarks.peers.ways_of_genes import KS, OF_OTHERS, OURS, Samples, answers, asked
from nfs_dask import SparseCentroid

TITLE = "Which k genes: how many are those of Mahalanobis centers, and what they gain"
LIBRARIES = ways_of_genes.LIBRARIES
SETS, QUICK_SETS = ("alon", "chowdary", "golub", "singh", "west"), ("west",)
COSTS: dict[str, dict[str, Any]] = {
    "Mahalanobis": {"metric": "mahalanobis"},
    "l2": {},
    "l1": {"metric": "manhattan"},
}


def of(settings: Settings, name: str) -> dict[str, Any]:
    found = datasets.genes(settings.data, name)
    samples = Samples(found.X, found.y, found.X, found.y)
    ks = [k for k in KS if k < found.X.shape[1]]
    gains = {cost: SparseCentroid(1, **options).fit(found.X, found.y).scores_ for cost, options in COSTS.items()}
    best = SparseCentroid(max(ks), **COSTS["Mahalanobis"]).fit(found.X, found.y)
    ranks = np.argsort(-best.scores_, kind="stable")
    ways = {}
    for way in asked(settings.quick):
        used = time.process_time()
        chosen, ended = answers(way, samples, ks)
        processor, cells = time.process_time() - used, {}
        for k, one in zip(ks, chosen, strict=False):
            n = len(one.support)
            shares = {cost: gain[one.support].sum() / np.sort(gain)[-k:].sum() for cost, gain in gains.items()}
            cells[str(k)] = {"n": n, "common": len(np.intersect1d(one.support, ranks[:k])) / k, "gains": shares}
        ways[way] = {"ks": cells, "processor": processor, "ended": ended}
    n, m = found.X.shape
    skipped = [way for way in OF_OTHERS if way not in ways]
    return {"n": n, "m": m, "ks": ks, "ways": ways, "left out": skipped}


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(settings.either(QUICK_SETS, SETS), lambda name: of(settings, name))


def _cell(found: dict[str, Any], k: int) -> str:
    one = found["ks"].get(str(k))
    if one is None:
        return str(found["ended"])
    number = "" if one["n"] == k else f" ({one['n']:,} genes)"
    return f"{one['common']:.0%}; {', '.join(f'{100 * gain:.1f}' for gain in one['gains'].values())} %{number}"


def _table(name: str, found: dict[str, Any]) -> str:
    head = [f"{name}: {found['n']:,} x {found['m']:,}", *(f"k = {k:,}" for k in found["ks"]), "processor s"]
    ways = found["ways"]
    rows = [[way, *(_cell(one, k) for k in found["ks"]), f"{one['processor']:.2f}"] for way, one in ways.items()]
    skipped = f"\n\nNot tried in the quick form: {', '.join(found['left out'])}." if found["left out"] else ""
    return markdown(head, rows) + skipped


def table(values: dict[str, Any]) -> str:
    legend = f"in common with {OURS}; gains in the costs of {', '.join(COSTS)}:"
    return "\n\n".join([legend, *(_table(name, found) for name, found in there(values).items())]) + left_out(values)
