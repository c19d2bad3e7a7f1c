"""Matrices in memory, beside scikit-learn: counting at the size of the IMDB reviews, then prediction and selection.

    python benchmarks/in_memory.py [--parquet imdb.parquet] [--k 50]

The matrix that is counted is what CountVectorizer makes (int64 counts); without the reviews, one of the same shape and
number of entries is generated. Both sides get the matrix and string labels, and check them. Predictions are those of
scikit-learn's model of all features and of ours of k; a selection stands beside the slice ``X[:, support]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neighbors import NearestCentroid

from nfs_dask import HybridNB, SerialEngine, SparseBernoulliNB, SparseCentroid, SparseMultinomialNB
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


Cases = Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]  # what, scikit-learn's way, ours


def matrices() -> dict[str, tuple[Any, np.ndarray]]:
    rng = np.random.default_rng(0)
    dense = (rng.random((100_000, 300)) < 0.26) * rng.integers(1, 6, (100_000, 300)).astype(np.float64)
    n, m, entries = 50_000, 200_000, 2_000_000
    columns = np.minimum(np.exp(rng.random(entries) * np.log(m)), m - 1).astype(np.int64)
    wide = sparse.csr_array((np.ones(entries), (rng.integers(n, size=entries), columns)), shape=(n, m))
    wide.sum_duplicates()
    y = rng.integers(2, size=len(dense))
    dense[y == 1, :60] += rng.random((int(y.sum()), 60)) < 0.2
    data = {"dense": dense, "CSR": sparse.csr_array(dense), "wide CSR": wide}
    return {name: (X, y[: X.shape[0]]) for name, X in data.items()}


def cases(X: Any, y: np.ndarray, k: int) -> Cases:
    """Predictions of all methods and a selection; scikit-learn's centers of wide data would fill 75 GiB."""
    theirs, ours = MultinomialNB().fit(X, y), SparseMultinomialNB(k=k).fit(X, y)
    for method in ("predict", "predict_proba"):
        yield f"multinomial, {method}", lambda m=method: getattr(theirs, m)(X), lambda m=method: getattr(ours, m)(X)
    yield "multinomial, score", lambda: theirs.score(X, y), lambda: ours.score(X, y)
    support = ours.get_support(indices=True)
    yield "transform", lambda: X[:, support], lambda: ours.transform(X)
    hybrid = HybridNB(k=k).fit(X, y)
    yield "hybrid, predict_proba", lambda: theirs.predict_proba(X), lambda: hybrid.predict_proba(X)
    binary, chosen = BernoulliNB().fit(X, y), SparseBernoulliNB(k=k, binarize=0.0).fit(X, y)
    yield "Bernoulli, predict", lambda: binary.predict(X), lambda: chosen.predict(X)
    for metric in ("euclidean", "mahalanobis", "manhattan") if X.shape[1] < 1000 else ():
        near = NearestCentroid(metric="manhattan" if metric == "manhattan" else "euclidean").fit(X, y)
        centers = SparseCentroid(k=k, metric=metric).fit(X, y)
        yield f"{metric}, predict", lambda m=near: m.predict(X), lambda m=centers: m.predict(X)


def lazily(X: np.ndarray, y: np.ndarray, k: int) -> Cases:
    """The same of a Dask array in memory, whose chunks scikit-learn is given one by one."""
    import dask.array as da

    lazy = da.from_array(X, chunks=(10_000, X.shape[1]), name=False)
    theirs, ours = MultinomialNB().fit(X, y), SparseMultinomialNB(k=k).fit(X, y)
    support = ours.get_support(indices=True)
    in_chunks = {"drop_axis": 1, "dtype": y.dtype, "meta": y[:0]}
    yield (
        "multinomial, predict",
        lambda: lazy.map_blocks(theirs.predict, **in_chunks).compute(),
        lambda: ours.predict(lazy).compute(),
    )
    yield "transform", lambda: lazy[:, support].compute(), lambda: ours.transform(lazy).compute()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parquet", type=Path)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--k", type=int, default=50)
    options = parser.parse_args()
    X, y = reviews(options.parquet) if options.parquet else generated()
    assert (ours(X, y) == MultinomialNB().fit(X, y).feature_count_).all()
    times = interleaved(
        {"MultinomialNB.fit": lambda: MultinomialNB().fit(X, y), "nfs-dask": lambda: ours(X, y)}, options.repeats
    )
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries")
    for name, t in times.items():
        print(f"{name:20s} {1e3 * t:7.1f} ms   {t / times['MultinomialNB.fit']:.2f} x the time of MultinomialNB.fit")
    print("\n| data | what | scikit-learn, ms | nfs-dask, ms | ratio |\n| --- | --- | --- | --- | --- |")
    for name, (X, y) in matrices().items():
        show(f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", cases(X, y, options.k), options.repeats // 3)
        if name == "dense":
            show("the same, Dask", lazily(X, y, options.k), options.repeats // 3)


def show(name: str, measured: Cases, repeats: int) -> None:
    for what, theirs, own in measured:
        own()  # which compiles
        beside, t = interleaved({"scikit-learn": theirs, "nfs-dask": own}, repeats).values()
        print(f"| {name} | {what} | {1e3 * beside:.1f} | {1e3 * t:.1f} | {t / beside:.2f} |", flush=True)


if __name__ == "__main__":
    main()
