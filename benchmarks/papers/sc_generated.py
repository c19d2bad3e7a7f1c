"""Seconds to choose features of sets that are not to be had, on generated ones of their size. SC Figures 1 and 2.

The tweets: 1.6 million rows of some thirteen words out of 273,779, by Zipf's law. Chin's genes: 118 samples of 22,215
normal values. Only seconds are told of these: what is chosen means nothing. Quick: a tenth of the tweets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.papers import sc_figure_1, sc_figure_2
from benchmarks.papers.choosers import warm_up
from benchmarks.papers.experiment import Settings, there
from benchmarks.papers.figures import panels, styles
from benchmarks.papers.tables import markdown
from benchmarks.papers.two_stages import Way
from nfs_dask.methods.number_of_features import number_to_keep

TITLE = "Seconds to choose features of generated sets: as many tweets and genes as the paper has"
TWEETS, GENES = "tweets, 1,600,000 x 273,779", "genes, 118 x 22,215"
WORDS_EACH = 13
SLOW = ("l1 logistic",)  # minutes each: left out of the tweets, as in the paper


def tweets(n: int, m: int, seed: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts of words and labels."""
    rng = np.random.default_rng(seed)
    words = np.exp(rng.random(n * WORDS_EACH) * np.log(m)).astype(np.int32) - 1
    starts = np.arange(n + 1, dtype=np.int32) * WORDS_EACH
    X = sparse.csr_array((np.ones(len(words), np.int64), words, starts), shape=(n, m))
    X.sum_duplicates()
    return X, rng.integers(2, size=n)


def of_tweets(settings: Settings) -> dict[str, Any]:
    X, y = tweets(settings.either(160_000, 1_600_000), 273_779, settings.seed)
    ways = {name: way for name, way in sc_figure_1.FAST.items() if name not in SLOW}
    return {"n": X.shape[0], "m": X.shape[1], "ways": timed(ways, {"counts": X}, y, sc_figure_1.SHARES["TWTR"])}


def of_genes(settings: Settings) -> dict[str, Any]:
    rng = np.random.default_rng(settings.seed)
    X, y = rng.normal(size=(118, 22_215)), rng.permutation(np.arange(118) % 2)
    train, test = np.arange(94), np.arange(94, 118)  # four fifths
    rows = sc_figure_2.split_of(X, y, train, test)
    sc_figure_2.by_medians(X[:, :10], y, 1, 1.0)  # compiles
    return {"n": 118, "m": X.shape[1], "ways": timed(sc_figure_2.WAYS, rows.forms, rows.y, sc_figure_2.SHARES)}


def timed(ways: dict[str, Way], forms: dict[str, Any], y: np.ndarray, shares: Sequence[float]) -> dict[str, Any]:
    """Seconds of each choice, and of all fits of its search, by way and share."""
    warm_up()
    found = {}
    for name, way in ways.items():
        X = forms[way.form]
        ks = [number_to_keep(share, X.shape[1]) for share in shares]
        choices = way.choose(X, y, [min(k, len(y)) for k in ks] if way.most_rows else ks)
        of_shares = zip(shares, choices, strict=True)
        found[name] = {str(share): {"seconds": one.seconds, "search": one.search} for share, one in of_shares}
    return found


def run(settings: Settings) -> dict[str, Any]:
    makers = {TWEETS: of_tweets, GENES: of_genes}
    with threadpool_limits(1):
        return settings.each(makers, lambda name: makers[name](settings))


def table(values: dict[str, Any]) -> str:
    return "\n\n".join(_table(found) for found in there(values).values())


def _table(found: dict[str, Any]) -> str:
    shares = list(next(iter(found["ways"].values())))
    rows = [[way, *(_cell(cells[share]) for share in shares)] for way, cells in found["ways"].items()]
    head = f"{found['n']:,} x {found['m']:,}: seconds (with the search)"
    return markdown([head, *(f"{100 * float(share):g} %" for share in shares)], rows)


def _cell(cell: dict[str, float]) -> str:
    return f"{cell['seconds']:.3g}" + (f" ({cell['search']:.3g})" if cell["search"] > cell["seconds"] else "")


def draw(values: dict[str, Any]) -> Any:
    figure, (row,) = panels(1, 2, width=4.4, height=3.4)
    for axes, found in zip(row, there(values).values(), strict=True):
        for way, look in styles(found["ways"]).items():
            cells = found["ways"][way]
            axes.plot([100 * float(share) for share in cells], [cells[share]["seconds"] for share in cells], **look)
        title = f"{found['n']:,} x {found['m']:,}"
        axes.set(title=title, xscale="log", yscale="log", xlabel="features, %", ylabel="seconds of the choice")
        axes.legend(loc="upper left", bbox_to_anchor=(-0.15, -0.22), ncols=2, fontsize="small")
    return figure
