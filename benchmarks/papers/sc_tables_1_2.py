"""Sizes of the sets: SC Tables 1 and 2, beside those of the sets that are at hand.

References: SC section 6, Tables 1 and 2.
"""

from __future__ import annotations

from typing import Any

from benchmarks.papers import datasets, sc_figure_1
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown

TITLE = "Sizes of sets of texts and of gene expression"
PRINTED = {  # features, samples
    "TWTR": (273_779, 1_600_000),
    "MPQA": (6_208, 10_606),
    "SST": (16_599, 79_654),
    "chowdary": (22_283, 104),
    "chin": (22_215, 118),
    "singh": (12_600, 102),
}


def size(settings: Settings, name: str) -> dict[str, Any]:
    if name in sc_figure_1.FILES:
        n, m = sc_figure_1.counted(settings.data, name)[0].shape
    else:
        n, m = datasets.genes(settings.data, name).X.shape
    return {"m": m, "n": n}


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(PRINTED, lambda name: size(settings, name))


def table(values: dict[str, Any]) -> str:
    found = there(values)
    rows = []
    for name, (m, n) in PRINTED.items():
        ours = (f"{found[name]['m']:,}", f"{found[name]['n']:,}") if name in found else ("", "")
        rows.append([name, f"{m:,}", ours[0], f"{n:,}", ours[1]])
    head = ["set", "features, printed", "features, ours", "samples, printed", "samples, ours"]
    return markdown(head, rows) + "\n" + left_out(values)
