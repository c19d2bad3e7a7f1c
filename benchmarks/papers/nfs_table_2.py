"""Sizes of the sets without a cap, and what the printed ones tell of the n-grams: NFS Table 2, NFS20 Table 2.

Numbers of distinct words, and of n-grams of words and characters up to two and up to three, of all texts and of those
that train. Quick: 3,000 texts a set, which is no comparison with the print.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.nfs_table_1 import n_terms
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import SETS, some

TITLE = "Sizes of the text sets without a cap, by n-grams and by whose vocabulary"
PRINTED = {  # words, "word bigrams", "character bigrams"
    "amazon": (31_666, 870_536, 25_019),
    "imdb": (103_124, 8_950_169, 48_420),
    "twitter": (273_779, 12_082_555, 17_812),
    "mpqa": (6_208, 27_603, 4_838),
    "sst2": (16_599, 227_012, 7_762),
}
COLUMNS: dict[str, dict[str, Any]] = {
    "words": {},
    "words, 1 to 2": {"ngrams": (1, 2)},
    "words, 1 to 3": {"ngrams": (1, 3)},
    "characters, 1 to 2": {"ngrams": (1, 2), "analyzer": "char"},
    "characters, 1 to 3": {"ngrams": (1, 3), "analyzer": "char"},
}
QUICK_ROWS = 3_000
OF = ("all texts", "training texts")


def one(settings: Settings, name: str) -> dict[str, Any]:
    dataset, whose = name.split(", ")
    found = texts(settings.data, SETS[dataset])
    rows = found.texts if whose == OF[0] else found.texts[found.train]
    rows = rows[some(len(rows), settings.either(QUICK_ROWS, None), settings.seed)]
    return {column: n_terms(rows, None, **options) for column, options in COLUMNS.items()}


def run(settings: Settings) -> dict[str, Any]:
    names = [f"{dataset}, {whose}" for dataset in SETS for whose in OF]
    return settings.each(names, partial(one, settings))


def table(values: dict[str, Any]) -> str:
    rows = []
    for name, (words, of_words, of_characters) in PRINTED.items():
        rows.append([f"{name}, printed", f"{words:,}", f"{of_words:,}", "", f"{of_characters:,}", ""])
        for whose in OF:
            found = there(values).get(f"{name}, {whose}")
            if found:
                rows.append([f"{name}, {whose}", *(f"{found[column]:,}" for column in COLUMNS)])
    return markdown(["", *COLUMNS], rows) + "\n" + left_out(values)
