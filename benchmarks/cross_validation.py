"""Cross-validation in two passes beside scikit-learn's GridSearchCV over the same folds, k and alphas.

    python benchmarks/cross_validation.py [--data DIR] [--generated] [--methods multinomial bernoulli ...] [--rows N]
                                         [--folds 5] [--alone]

Counts of the 25,000 training reviews of IMDB, or generated ones of about their size. GridSearchCV fits one of our
estimators for each fold, k and alpha; its scores must be ours to 1e-12. Beside it, how long a pipeline of SelectKBest
and scikit-learn's MultinomialNB takes over that grid. Everything runs in one process, on data in memory.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from choosing import data_folder, timed
from scipy import sparse
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs
from nfs_dask.registry import METHODS

ALPHAS = (0.1, 0.3, 1.0)
PARAMETERS: dict[str, dict[str, Any]] = {"bernoulli": {"binarize": 0.0}, "mahalanobis": {"variance_floor": 1e-6}}


def imdb(data: Path) -> tuple[Any, np.ndarray]:
    """Counts of the words of the training reviews, and their labels."""
    import pandas as pd
    from sklearn.feature_extraction.text import CountVectorizer

    frame = pd.read_parquet(data / "imdb.parquet", columns=["text", "label", "split"])
    frame = frame[frame["split"] == "train"]
    X = CountVectorizer(dtype=np.int32).fit_transform(frame["text"])
    return X, frame["label"].to_numpy(np.int64)


def generated(n: int = 25_000, m: int = 75_000, words: int = 140, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Words of Zipf's law, of which some are more frequent in one class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    rows = np.repeat(np.arange(n), rng.poisson(words, n))
    columns = (np.exp(rng.random(len(rows)) * np.log(m)) - 1).astype(np.int64)
    told = (columns % 7 == 0) & (rng.random(len(rows)) < 0.3)  # some of these words belong to one class
    columns[told] = np.minimum(columns[told] // 14 * 14 + 7 * y[rows[told]], m - 1)
    X = sparse.csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape=(n, m))
    X.sum_duplicates()
    return X, y


def compare(method: str, X: Any, y: np.ndarray, ks: list[int], folds: StratifiedKFold) -> None:
    """One method: both ways, whether they agree, and how long they take."""
    parameters = PARAMETERS.get(method, {})
    smooths = method in ("multinomial", "bernoulli")
    alphas = ALPHAS if smooths else (1.0,)
    given: dict[str, Any] = {"method": method, "engine": nfs.SerialEngine(), **parameters}
    ours = partial(nfs.cross_validate, X, y, ks=ks, alphas=alphas, folds=folds, **given)
    nfs.cross_validate(X[::50], y[::50], ks=[5, 9], folds=2, **given)  # compiles
    table, took = timed(ours)
    grid: dict[str, Any] = {"k": ks} | ({"alpha": list(alphas)} if smooths else {})
    estimator = METHODS[method].estimator_class()(**METHODS[method].fixed, **parameters)
    search = GridSearchCV(estimator, grid, cv=folds, refit=False, error_score="raise")
    found, refitted = timed(partial(search.fit, X, y))
    largest = 0.0
    for number, cell in enumerate(found.cv_results_["params"]):
        scores = [found.cv_results_[f"split{fold}_test_score"][number] for fold in range(folds.n_splits)]
        largest = max(largest, float(np.abs(table.scores(k=cell["k"], alpha=cell.get("alpha")) - scores).max()))
    assert largest < 1e-12, f"{method}: the scores differ by {largest}"
    n = folds.n_splits * len(ks) * len(alphas)
    passes = ", ".join(f"{one.name} {one.seconds:.2f}" for one in table.passes)
    cells = (method, f"{n}", f"{took:.2f} ({passes})", f"{refitted:.1f}", f"{refitted / took:.1f}", table.choose("cv"))
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def select_k_best(X: Any, y: np.ndarray, ks: list[int], folds: StratifiedKFold) -> None:
    """What scikit-learn's own selection takes for the same grid."""
    grid = {"selectkbest__k": ks, "multinomialnb__alpha": list(ALPHAS)}
    search = GridSearchCV(make_pipeline(SelectKBest(chi2), MultinomialNB()), grid, cv=folds, refit=False)
    _, took = timed(partial(search.fit, X, y))
    print(f"\nSelectKBest(chi2), MultinomialNB: {took:.1f} s for {folds.n_splits * len(ks) * len(ALPHAS)} models")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--rows", type=int, default=25_000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="without SelectKBest")
    parser.add_argument("--methods", nargs="+", default=["multinomial", "bernoulli", "l2", "mahalanobis", "l1"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = generated() if options.generated else imdb(options.data)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[: options.rows])
    X, y = X[rows], y[rows]
    ks = [int(k) for k in np.unique(np.geomspace(10, X.shape[1], 10).round())]
    folds = StratifiedKFold(options.folds)
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries, k of {ks}\n")
    print("| method | models | two passes, s | GridSearchCV, s | times as long | k chosen |")
    print("| --- | --- | --- | --- | --- | --- |")
    for method in options.methods:
        compare(method, X, y, ks, folds)
    if not options.alone:
        select_k_best(X, y, ks, folds)


if __name__ == "__main__":
    main()
