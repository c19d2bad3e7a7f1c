"""Counting a CSR matrix in memory, beside scikit-learn's MultinomialNB.fit, at the size of the IMDB reviews.

    python benchmarks/in_memory.py [--parquet imdb.parquet]

The matrix is what CountVectorizer makes (int64 counts); without the reviews, one of the same shape and number of
entries is generated. Both sides get the matrix and string labels, and check them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB

from nfs_dask import SerialEngine
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.counts import ClassCounts


def generated() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    n, m, words = 25_000, 74_849, 6_000_000
    columns = np.minimum(np.exp(rng.random(words) * np.log(m)), m - 1).astype(np.int64)
    X = sparse.csr_matrix((np.ones(words, np.int64), (rng.integers(n, size=words), columns)), shape=(n, m))
    X.sum_duplicates()
    return X, np.array(["neg", "pos"])[rng.integers(2, size=n)]


def reviews(path: Path) -> tuple[Any, np.ndarray]:
    import pandas as pd
    from sklearn.feature_extraction.text import CountVectorizer

    frame = pd.read_parquet(path)
    frame = frame[frame["split"] == "train"]
    return CountVectorizer().fit_transform(frame["text"]), np.array(["neg", "pos"])[frame["label"]]


def ours(X: Any, y: np.ndarray) -> np.ndarray:
    source = open_source(X, y)
    return SerialEngine().reduce(ClassCounts(len(source.classes)), source).state.arrays["sums"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parquet", type=Path)
    parser.add_argument("--repeats", type=int, default=21)
    options = parser.parse_args()
    X, y = reviews(options.parquet) if options.parquet else generated()
    assert (ours(X, y) == MultinomialNB().fit(X, y).feature_count_).all()
    times = interleaved(
        {"MultinomialNB.fit": lambda: MultinomialNB().fit(X, y), "nfs-dask": lambda: ours(X, y)}, options.repeats
    )
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries")
    for name, t in times.items():
        print(f"{name:20s} {1e3 * t:7.1f} ms   {t / times['MultinomialNB.fit']:.2f} x the time of MultinomialNB.fit")


if __name__ == "__main__":
    main()
