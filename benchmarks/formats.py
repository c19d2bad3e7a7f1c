"""Counting the same matrix in other formats, beside scipy's CSR.

    python benchmarks/formats.py

Fit-time cost: opening the source, with its labels, and one serial pass over it.
"""

from __future__ import annotations

import argparse

import numpy as np
import sparse
from in_memory import generated, ours
from measure import interleaved
from scipy.sparse import csr_array


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=21)
    options = parser.parse_args()
    X, y = generated()
    X.sort_indices()
    coo = sparse.COO.from_scipy_sparse(X)
    wide = sparse.COO(coo.coords.astype(np.int64), coo.data, shape=coo.shape, sorted=True, has_duplicates=False)
    assert wide.coords.dtype == np.int64
    formats = {
        "scipy csr_matrix": X,
        "scipy csr_array": csr_array(X),
        "scipy csr_array, 64-bit indices": csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))),
        "pydata COO": coo,
        "pydata COO, 64-bit coordinates": wide,
        "pydata GCXS": sparse.GCXS.from_coo(coo, compressed_axes=(0,)),
        "scipy csc_matrix (converted)": X.tocsc(),
    }
    truth = ours(X, y)
    for name, matrix in formats.items():
        assert np.array_equal(ours(matrix, y), truth), name
    times = interleaved({name: lambda m=matrix: ours(m, y) for name, matrix in formats.items()}, options.repeats)
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries")
    for name, t in times.items():
        print(f"{name:30s} {1e3 * t:7.1f} ms   {t / times['scipy csr_matrix']:.2f} x the time of CSR")


if __name__ == "__main__":
    main()
