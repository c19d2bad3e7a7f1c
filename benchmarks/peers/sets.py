"""Texts and genes that all ways see alike: the same words, the same rows to choose by and to judge by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.papers import datasets
from benchmarks.papers.experiment import Settings
from benchmarks.papers.newsgroups import PAIRS
from benchmarks.papers.vectors import some
from nfs_dask import TextVectorizer

PAIR = "PC and Mac hardware"
QUICK_ROWS = 1_000


@dataclass(frozen=True)
class Rows:
    """Counted words of texts to choose by, and of texts to judge by."""

    X: Any  # CSR of whole numbers, (n, m)
    y: np.ndarray  # 0 and 1
    X_test: Any
    y_test: np.ndarray
    words: np.ndarray  # (m,)

    @cached_property
    def logs(self) -> Any:
        """log(1 + count), as logistic regressions see them."""
        return self.X.astype(np.float64).log1p()

    @cached_property
    def logs_test(self) -> Any:
        return self.X_test.astype(np.float64).log1p()


@dataclass(frozen=True)
class Cap:
    """So many texts to choose by, and the words that so many of them have."""

    rows: int
    least: int


Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # texts, labels; texts and labels to judge by


def published(folder: Path, name: str) -> Parts:
    found = datasets.texts(folder, name)
    train = found.train
    return found.texts[train], found.y[train], found.texts[~train], found.y[~train]


def tweets(folder: Path, seed: int = 0) -> Parts:
    """Those labeled by emoticons: four fifths to choose by, as the test set that comes with them has 359 tweets."""
    texts, y, *_ = published(folder, "twitter100k")
    texts, judged, y, y_judged = train_test_split(texts, y, test_size=0.2, stratify=y, random_state=seed)
    return texts, y, judged, y_judged


def pair(folder: Path) -> Parts:
    """Two newsgroups, messages without their headers."""
    frame = datasets.frame(folder, "newsgroups20")
    frame = frame[frame["group"].isin(PAIRS[PAIR])]
    y, train = (frame["group"] == PAIRS[PAIR][1]).to_numpy(np.int64), (frame["split"] == "train").to_numpy()
    texts = frame["body"].to_numpy(dtype=object)
    return texts[train], y[train], texts[~train], y[~train]


def own_split(name: str) -> Callable[[Path], Parts]:
    return lambda folder: published(folder, name)


@dataclass(frozen=True)
class Texts:
    """Where texts come from, and whether there are few enough for ways that take long."""

    parts: Callable[[Path], Parts]
    cap: Cap | None = None
    few: bool = False


SETS = {
    "imdb": Texts(own_split("imdb")),
    "tweets": Texts(tweets),
    "newsgroups, PC and Mac": Texts(pair, Cap(10_000, 2), few=True),
    "imdb, 2,000 reviews": Texts(own_split("imdb"), Cap(2_000, 10), few=True),
    "amazon": Texts(own_split("amazon_mds")),
    "movie sentences": Texts(own_split("rt_polarity")),
    "sst2": Texts(own_split("sst2")),
    "mpqa": Texts(own_split("mpqa")),
}


def counted(settings: Settings, name: str) -> Rows:
    """The rows of a set; its vocabulary is that of the texts to choose by."""
    of = SETS[name]
    texts, y, judged, y_judged = of.parts(settings.data)
    cap = of.cap or Cap(len(y), 1)
    rows = some(len(y), min(cap.rows, settings.either(QUICK_ROWS, cap.rows)), settings.seed)
    vectorizer = TextVectorizer(min_df=cap.least).fit(texts[rows])
    X, X_judged = vectorizer.transform(texts[rows]), vectorizer.transform(judged)
    return Rows(X, y[rows], X_judged, y_judged, vectorizer.get_feature_names_out())
