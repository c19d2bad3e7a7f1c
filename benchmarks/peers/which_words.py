"""Which k words: those of each way beside those of sparse multinomial naive Bayes, on the same words of the same texts.

Of each k: how many of the words are ours too, and what the words gain, in per cent of the bound that no k words exceed
(the training log likelihood of sparse multinomial naive Bayes above that of no words). Processor seconds are of all k
together, with searches for a penalty; slow ways have a process of their own, and seconds of all that it started. Below
are the words of the smallest k themselves.

References: gains and bounds as in docs/mathematics.md, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.objective_gain import gain, gain_of_bound
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.peers import ways_of_words
from benchmarks.peers.ways_of_words import ALPHA, OURS, Choices, choices
from nfs_dask import SparseMultinomialNB

TITLE = "Which k words: how many are ours, and what they gain"
LIBRARIES = ways_of_words.LIBRARIES
SETS = ("imdb", "tweets", "newsgroups, PC and Mac", "imdb, 2,000 reviews")
QUICK_SETS = ("imdb", "newsgroups, PC and Mac")


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(settings.either(QUICK_SETS, SETS), lambda name: compared(choices(settings, name)))


def compared(found: Choices) -> dict[str, Any]:
    rows = found.rows
    totals = np.stack([np.asarray(rows.X[rows.y == c].sum(axis=0)).ravel() for c in (0, 1)]) + ALPHA
    models = {k: SparseMultinomialNB(k, alpha=ALPHA).fit(rows.X, rows.y) for k in found.ks}
    bounds = {k: gain_of_bound(totals, model) for k, model in models.items()}
    ways = {}
    for way, said in found.ways.items():
        cells = {}
        for k, answer in zip(found.ks, said.answers, strict=False):
            support, best = answer.value.support, models[k].get_support(indices=True)
            common = len(np.intersect1d(support, best)) / k
            cells[str(k)] = {"n": len(support), "common": common, "gain": gain(totals, support) / bounds[k]}
        words = rows.words[said.answers[0].value.support].tolist() if said.answers else []
        processor = said.answers[-1].processor if said.answers else 0.0
        ways[way] = {"ks": cells, "words": words, "processor": processor, "ended": said.ended}
    n, m = rows.X.shape
    return {"n": n, "m": m, "ks": found.ks, "ways": ways, "left out": found.left_out}


def _cell(found: dict[str, Any], k: int) -> str:
    one = found["ks"].get(str(k))
    if one is None:
        return str(found["ended"])
    number = "" if one["n"] == k else f" ({one['n']:,} words)"
    return f"{one['common']:.0%}, {100 * one['gain']:.2f} %{number}"


def table(values: dict[str, Any]) -> str:
    return "\n\n".join(_table(name, found) for name, found in there(values).items()) + "\n" + left_out(values)


def _table(name: str, found: dict[str, Any]) -> str:
    head = [f"{name}: {found['n']:,} x {found['m']:,}", *(f"k = {k:,}" for k in found["ks"]), "processor s"]
    ways = found["ways"]
    head.append(f"the {found['ks'][0]} words")
    rows = []
    for way, one in ways.items():
        cells = [_cell(one, k) for k in found["ks"]]
        rows.append([way, *cells, f"{one['processor']:.2f}", _words(one["words"], ways[OURS]["words"], way)])
    return markdown(head, rows) + left_out_of(found)


def _words(words: list[str], ours: list[str], way: str) -> str:
    """All of ours; of others those that ours has not."""
    if way == OURS:
        return " ".join(words)
    other = [word for word in words if word not in ours]
    return " ".join(other) if other else "the same"


def left_out_of(found: dict[str, Any]) -> str:
    """Which ways a set is too large for."""
    return f"\n\nNot tried here, being slow: {', '.join(found['left out'])}." if found["left out"] else ""
