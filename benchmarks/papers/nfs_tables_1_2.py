"""Sizes of the text sets, and what the printed ones tell of the n-grams: NFS Tables 1 and 2, NFS20 Tables 1 and 2.

Distinct words of all texts, and n-grams of one to two, and one to three, words and characters. In Table 1 all but
counts are capped at 5,000. Quick: 3,000 texts a set, whose sizes are no comparison with the print.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import MOST, SETS, some
from nfs_dask import TextVectorizer

TITLE = "Sizes of the text sets, by n-grams"
PRINTED = {  # words, "word bigrams", "character bigrams", texts that train, and that judge
    "amazon": (31_666, 870_536, 25_019, 8_000, 2_000),
    "imdb": (103_124, 8_950_169, 48_420, 25_000, 25_000),
    "twitter": (273_779, 12_082_555, 17_812, 1_600_000, 498),
    "mpqa": (6_208, 27_603, 4_838, 8_484, 2_122),
    "sst2": (16_599, 227_012, 7_762, 76_961, 1_821),
}
QUICK_ROWS = 3_000


def one_set(settings: Settings, name: str) -> dict[str, Any]:
    found = texts(settings.data, SETS[name])
    rows = found.texts[some(len(found), settings.either(QUICK_ROWS, None), settings.seed)]
    words = [term.count(" ") + 1 for term in TextVectorizer(ngrams=(1, 3)).fit(rows).get_feature_names_out()]
    characters = [
        len(term) for term in TextVectorizer(ngrams=(1, 3), analyzer="char").fit(rows).get_feature_names_out()
    ]
    return {
        "words": [sum(n <= longest for n in words) for longest in (1, 2, 3)],
        "characters": [sum(n <= longest for n in characters) for longest in (2, 3)],
        "train": int(found.train.sum()),
        "test": int((~found.train).sum()),
    }


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(SETS, partial(one_set, settings))


def table(values: dict[str, Any]) -> str:
    rows = []
    for name, found in there(values).items():
        words, pairs, characters, train, test = (f"{n:,}" for n in PRINTED[name])
        rows.append([f"{name}, printed", words, pairs, "", characters, "", train, test])
        ours = (*found["words"], *found["characters"], found["train"], found["test"])
        rows.append([f"{name}, here", *(f"{n:,}" for n in ours)])
    head = ["", "words", "1 to 2 words", "1 to 3", "1 to 2 characters", "1 to 3", "train", "test"]
    few = [f"{name} {n:,}" for name, found in there(values).items() if (n := found["characters"][1]) < MOST]
    capped = (
        f"Table 1 caps all but words at {MOST:,}; n-grams of characters are fewer: {', '.join(few) or 'of no set'}."
    )
    return f"{markdown(head, rows)}\n\n{capped}\n{left_out(values)}"
