"""The four kinds of feature vectors of the papers about naive feature selection, and their text sets.

Sizes that the papers print tell what they do not say: vocabularies are those of all texts, not of the training texts
alone, and what they call bigrams are n-grams of one to three words or characters (see `nfs_tables_1_2`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.datasets import texts
from benchmarks.papers.experiment import Settings
from nfs_dask import TextVectorizer

SETS = {"amazon": "amazon_mds", "imdb": "imdb", "twitter": "twitter100k", "mpqa": "mpqa", "sst2": "sst2_phrases"}
KINDS: dict[str, dict[str, Any]] = {
    "counts": {},
    "tf-idf": {"tfidf": True},
    "word n-grams": {"tfidf": True, "ngrams": (1, 3)},
    "character n-grams": {"tfidf": True, "ngrams": (1, 3), "analyzer": "char"},
}
MOST = 5_000  # terms, where they are capped; counts never are


@dataclass(frozen=True)
class Vectors:
    """Rows of one kind, and which of them train."""

    X: Any  # CSR, (n, m)
    y: np.ndarray
    train: np.ndarray  # of bool

    def split(self, train: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        return self.X[train], self.y[train], self.X[~train], self.y[~train]


@lru_cache(maxsize=1)
def vectors(data: Path, name: str, kind: str, capped: bool, most_rows: int | None, seed: int) -> Vectors:
    found = texts(data, SETS[name])
    rows = some_of_both(found.train, most_rows, seed)
    limit = MOST if capped and kind != "counts" else None
    vectorizer = TextVectorizer(max_features=limit, **KINDS[kind])
    X = vectorizer.fit_transform(found.texts[rows])
    return Vectors(X, found.y[rows], found.train[rows])


def some(n: int, most: int | None, seed: int) -> np.ndarray:
    """All row numbers, or a random part of them, ascending."""
    if most is None or most >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def some_of_both(train: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    """Row numbers of at most so many texts that train, and of half as many that judge."""
    parts = [(np.flatnonzero(train), most), (np.flatnonzero(~train), most and most // 2)]
    return np.concatenate([rows[some(len(rows), limit, seed)] for rows, limit in parts])


def of(settings: Settings, name: str, kind: str, capped: bool, most_rows: int | None = None) -> Vectors:
    return vectors(settings.data, name, kind, capped, most_rows, settings.seed)


def splits(found: Vectors, n: int, seed: int) -> list[np.ndarray]:
    """The published split, then random ones of the same shares: which rows train."""
    rng = np.random.default_rng(seed)
    return [found.train, *(rng.permutation(found.train) for _ in range(n - 1))]
