"""Models and tables of counted words that are hard to say in SQL, and what the models say of these documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import nfs_dask as nfs

HARD_TERMS = [
    "it's", '"quoted"', "'; DROP TABLE terms; --", "back\\slash", "\\'", "\\", "日本語", "\U0001f600", "e\u0301", "é",
    "%s{0}", "$1 ?", "two words", "tab\there", "line\nend", " ", "NULL", "E'x'", "-- comment", "/*", "a" * 300, "x;y",
    "\u0131", "İ",
]  # fmt: skip
HARD_LABELS = ["it's", "'; DROP TABLE terms; --", "\\", "日本"]


class SqlCase(NamedTuple):
    name: str
    model: Any
    terms: list[str]
    X: Any  # (n, m) values of documents, some without any selected term


def hard_counts(n: int, labels: Any, seed: int, high: float = 0.6) -> tuple[Any, Any]:
    """Counts whose rates depend on the class, with labels."""
    rng = np.random.default_rng(seed)
    labels = np.asarray(labels)
    codes = np.concatenate([np.arange(len(labels)), rng.integers(len(labels), size=n - len(labels))])
    rates = rng.gamma(0.5, high, (len(labels), len(HARD_TERMS)))
    return rng.poisson(rates[codes]), labels[codes]


def named(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=HARD_TERMS)


def estimators() -> Iterator[tuple[str, Any, Any]]:
    """What is fitted, with its labels."""
    two, four = HARD_LABELS[:2], HARD_LABELS
    yield "multinomial", nfs.SparseMultinomialNB(k=9), two
    yield "multinomial of four, all", nfs.SparseMultinomialNB(k="all"), four
    yield "zero probabilities", nfs.SparseMultinomialNB(k=12, alpha=0), four
    yield "bernoulli", nfs.SparseBernoulliNB(k=9, binarize=0), [3, -9223372036854775808]
    yield "bernoulli above 1, zero probabilities", nfs.SparseBernoulliNB(k=15, binarize=1.0, alpha=0), [1, 2, 3]
    yield "l2", nfs.SparseCentroid(k=7), [False, True]
    yield "mahalanobis", nfs.SparseCentroid(k=7, metric="mahalanobis", variance_floor=0.1), four
    yield "l1", nfs.SparseCentroid(k=12, metric="manhattan"), four
    yield "hybrid", nfs.HybridNB(k=8), two
    yield "hybrid of regions", nfs.HybridNB(regions=3), four
    yield "hybrid of tables", nfs.HybridNB(regions=2, tables="separate", normalize=False), two
    yield "prior of zero", nfs.SparseMultinomialNB(k=9, class_prior=[0.0, 1.0]), two
    yield "error of all", nfs.ErrorRateSelector(k="all"), two


def sql_cases() -> list[SqlCase]:
    cases = []
    for seed, (name, estimator, labels) in enumerate(estimators()):
        X, y = hard_counts(300, labels, seed)
        model, new = estimator.fit(named(X[:150]), y[:150]), X[150:]
        new[0] = 0
        new[1, model.get_support()] = 0
        new[2] = 1
        cases.append(SqlCase(name, model, HARD_TERMS, new))
    return cases


def long_rows(X: Any, terms: list[str]) -> list[tuple[int, str | None, int]]:
    """Documents as a table of counted words: in no order, some in two rows, empty ones with NULL."""
    rng = np.random.default_rng(0)
    rows: list[tuple[int, str | None, int]] = []
    for i, j in zip(*np.nonzero(X), strict=True):
        n = int(X[i, j])
        parts = [n] if n < 2 or rng.random() < 0.7 else [1, n - 1]
        rows += [(int(i), terms[j], part) for part in parts]
    rows += [(int(i), None, 0) for i in np.flatnonzero(X.sum(axis=1) == 0)]
    rows += [(int(i), "a term that the model does not know", 5) for i in range(0, len(X), 3)]
    return [rows[i] for i in rng.permutation(len(rows))]
