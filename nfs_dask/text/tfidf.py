"""From counts to values: tf-idf as scikit-learn's TfidfVectorizer has it, to the bit in float64.

The operations are its own, in its order: logarithms are numpy's, sums over a row run from its first column to its last.
So do those of `transform` there; those of `fit_transform` run in the order in which terms were first met, and the last
bit may differ.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.text.settings import TextSettings


def inverse_document_frequencies(df: Array, n_documents: int) -> Array:
    """log((n + 1) / (df + 1)) + 1 for each term, (n,) float64."""
    idf = np.full(len(df), n_documents + 1, np.float64)
    idf /= df.astype(np.float64) + 1.0
    np.log(idf, out=idf)
    idf += 1.0
    return idf


def weigh(indptr: Array, indices: Array, counts: Array, settings: TextSettings, idf: Array | None = None) -> Array:
    """Values of the entries of some rows, (nnz,): counts, ones where binary, float64 for tf-idf.

    ``idf`` has a number for each term that ``indices`` mean; None leaves this factor out. Rows without entries stay so.
    """
    if settings.binary:
        counts = np.ones_like(counts)
    if not settings.tfidf:
        return counts
    values = counts.astype(np.float64)
    if settings.sublinear_tf:
        np.log(values, out=values)
        values += 1.0
    if idf is not None:
        values *= idf[indices]
    if settings.norm is not None:
        _normalize(indptr, values, settings.norm == "l2")
    return values


@kernel
def _normalize(indptr, values, squares):
    """Divide each row by its l2 norm, or by its l1 norm."""
    for row in range(len(indptr) - 1):
        total = 0.0
        for i in range(indptr[row], indptr[row + 1]):
            total += values[i] * values[i] if squares else abs(values[i])
        if total == 0.0:
            continue
        if squares:
            total = np.sqrt(total)
        for i in range(indptr[row], indptr[row + 1]):
            values[i] /= total
