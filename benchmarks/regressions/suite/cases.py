"""Data of all benchmarks: the same at every commit, and small unless NFS_DASK_BENCHMARK_SCALE says otherwise.

Only names that users have are taken from the package, so that older commits can be measured, too.
"""

from __future__ import annotations

import os

import numpy as np
from scipy import sparse

SCALE = float(os.environ.get("NFS_DASK_BENCHMARK_SCALE", "1"))
K = 1000


def counts(
    rows: int = 40_000, features: int = 200_000, words: int = 25, seed: int = 0
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Words by Zipf's law, of which some are more frequent in one class."""
    rng, rows = np.random.default_rng(0), int(rows * SCALE)
    labels = rng.integers(2, size=rows)
    row = np.repeat(np.arange(rows), rng.poisson(words, rows))
    column = (np.exp(rng.random(len(row)) * np.log(features)) - 1).astype(np.int64)
    column = np.where((column % 5 == 0) & (rng.random(len(row)) < 0.4), column // 10 * 10 + 5 * labels[row], column)
    matrix = sparse.csr_matrix((np.ones(len(row), np.int32), (row, column)), (rows, features))
    matrix.sum_duplicates()
    return matrix, labels


def texts(documents: int = 10_000, seed: int = 0) -> tuple[list[str], list[str]]:
    """Documents of words with the frequencies of a language, and their labels."""
    rng, documents = np.random.default_rng(seed), int(documents * SCALE)
    letters = np.array(list("etaoinshrdlucmfw"))
    words = np.array(["".join(rng.choice(letters, length)) for length in rng.integers(2, 10, 20_000)])
    rank = (np.exp(rng.random(documents * 30) * np.log(len(words))) - 1).astype(np.int64)
    return [" ".join(row) for row in words[rank].reshape(documents, 30)], ["ham", "spam"] * (documents // 2)
