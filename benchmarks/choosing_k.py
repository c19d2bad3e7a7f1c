"""The number of words that each rule chooses, how good its model is on the test texts, and the best k in hindsight.

    python benchmarks/choosing_k.py [--data DIR] [--sets imdb mpqa sst2_phrases twitter100k] [--methods multinomial ...]

The path and the rules see counts of the words of the training texts only, in memory. Each rule is asked by itself, so
that "cv" and "1se" cross-validate twice; its seconds come after those of the path, which are given beside the name of
the method. In brackets are the k that it could not tell apart. Then a model of each k that rules looked at is fitted to
all training texts and judged by the test texts: "hindsight" is the k of the best one there, which nobody could know.
Accuracies have the standard error of a share.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from choosing import data_folder, timed

import nfs_dask as nfs
from nfs_dask.estimators.loading import make_estimator

SETS = ("imdb", "mpqa", "sst2_phrases", "twitter100k")
METHODS: dict[str, dict[str, Any]] = {"multinomial": {}, "bernoulli": {"binarize": 0.0}, "l2": {}, "mahalanobis": {}}
RULES = ("elbow", "error", "cv", "1se")


def counted(path: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Counts of the words and labels of the training texts, and of the test texts."""
    import pandas as pd

    frame = pd.read_parquet(path, columns=["text", "label", "split"])
    train, test = (frame[frame["split"] == split] for split in ("train", "test"))
    vectorizer = nfs.TextVectorizer().fit(train["text"])
    rows = [vectorizer.transform(part["text"]) for part in (train, test)]
    return rows[0], train["label"].to_numpy(), rows[1], test["label"].to_numpy()


def compare(name: str, method: str, data: tuple[Any, np.ndarray, Any, np.ndarray]) -> list[str]:
    """A row of the table."""
    X, y, X_test, y_test = data
    path, making = timed(lambda: nfs.path(X, method, y=y, **METHODS[method]))
    looked_at = path.ks[path.sample()].tolist()

    @cache
    def accuracy(k: int) -> float:
        with warnings.catch_warnings(action="ignore", category=nfs.DataWarning):  # a path may begin with k = 1
            return float(make_estimator(method, k=k, **METHODS[method]).fit(X, y).score(X_test, y_test))

    def cell(k: int) -> str:
        share = accuracy(k)
        return f"{k:,}: {share:.4f} ± {np.sqrt(share * (1 - share) / len(y_test)):.4f}"

    row = [name, f"{X.shape[0]:,} / {X.shape[1]:,} / {len(y_test):,}", f"{method}, {making:.1f} s"]
    for rule in RULES:
        chosen, took = timed(lambda rule=rule: path.choose(rule))  # type: ignore[misc]
        low, high = chosen.interval
        row.append(f"{cell(int(chosen))} ({low:,} to {high:,}), {took:.1f} s")
        looked_at.append(int(chosen))
    best = max(sorted(set(looked_at)), key=accuracy)
    return [*row, cell(best), cell(path.n_features)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    head = ["data", "texts / words / test texts", "method, path", *RULES, "hindsight", "all words"]
    small = np.tile(np.eye(4, dtype=np.int64), (10, 1))
    for method in options.methods:
        compare("", method, (small, np.arange(40) % 2, small, np.arange(40) % 2))  # compiles
    print("|", " | ".join(head), "|\n|" + " --- |" * len(head))
    for name in options.sets:
        data = counted(options.data / f"{name}.parquet")
        for method in options.methods:
            print("|", " | ".join(compare(name, method, data)), "|", flush=True)


if __name__ == "__main__":
    main()
