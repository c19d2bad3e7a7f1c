"""Sizes of the sets, terms capped at 5,000: NFS Table 1, NFS20 Table 1.

The number of features of each kind of vectors as `vectors` makes them, and of texts that train and that judge.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings, left_out, there
from benchmarks.papers.tables import markdown
from benchmarks.papers.vectors import KINDS, MOST, SETS, some
from nfs_dask import TextVectorizer

TITLE = "Sizes of the text sets, at most 5,000 terms but for counts"
PRINTED = {  # by kind, then texts that train and that judge
    "amazon": (31_666, 5_000, 5_000, 5_000, 8_000, 2_000),
    "imdb": (103_124, 5_000, 5_000, 5_000, 25_000, 25_000),
    "twitter": (273_779, 5_000, 5_000, 5_000, 1_600_000, 498),
    "mpqa": (6_208, 5_000, 5_000, 4_838, 8_484, 2_122),
    "sst2": (16_599, 5_000, 5_000, 5_000, 76_961, 1_821),
}
QUICK_ROWS = 2_000  # for what is more than single words


def n_terms(texts_of: Any, most: int | None, **options: Any) -> int:
    return len(TextVectorizer(max_features=most, **{**options, "tfidf": False}).fit(texts_of).get_feature_names_out())


def one_set(settings: Settings, name: str) -> dict[str, Any]:
    found = texts(settings.data, SETS[name])
    part = found.texts[some(len(found), settings.either(QUICK_ROWS, None), settings.seed)]
    sizes = {
        kind: n_terms(found.texts if kind == "counts" else part, None if kind == "counts" else MOST, **options)
        for kind, options in KINDS.items()
    }
    return sizes | {"train": int(found.train.sum()), "test": int((~found.train).sum())}


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(SETS, partial(one_set, settings))


def table(values: dict[str, Any]) -> str:
    columns = (*KINDS, "train", "test")
    rows = []
    for name, found in there(values).items():
        cells = zip(PRINTED[name], columns, strict=True)
        rows.append([name, *(f"{printed:,} / {found[column]:,}" for printed, column in cells)])
    return markdown(["printed / ours", *columns], rows) + "\n" + left_out(values)
