"""Awkward data for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

VALUES = {
    "bool": st.booleans(),
    "uint8": st.integers(0, 255),
    "int64": st.integers(0, 1 << 40),
    "float32": st.integers(0, 1 << 20).map(float),
    "float64": st.sampled_from([0.0, 1.0, 2.0, 0.5, 1 / 3]),
}


@st.composite
def awkward_csr(draw, max_rows=12, max_columns=8, dtypes=tuple(VALUES), canonical=False):
    """A CSR matrix as it may come: empty rows and columns, stored zeros, one row; unsorted and repeated columns."""
    n_rows, n_columns = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    dtype = draw(st.sampled_from(dtypes))
    columns = st.lists(st.integers(0, n_columns - 1), max_size=2 * n_columns, unique=canonical)
    rows = draw(st.lists(columns.map(sorted) if canonical else columns, min_size=n_rows, max_size=n_rows))
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([c for row in rows for c in row], draw(st.sampled_from(["int32", "int64"])))
    data = np.array(draw(st.lists(VALUES[dtype], min_size=len(indices), max_size=len(indices))), dtype)
    matrix = sparse.csr_matrix((n_rows, n_columns), dtype=dtype)
    matrix.indptr, matrix.indices, matrix.data = indptr.astype(indices.dtype), indices, data
    return matrix


@st.composite
def labelled_csr(draw, max_classes=3, **options):
    """An awkward CSR matrix and a label for each row; some classes may have no rows."""
    matrix = draw(awkward_csr(**options))
    labels = st.integers(0, max_classes - 1)
    return matrix, np.array(draw(st.lists(labels, min_size=matrix.shape[0], max_size=matrix.shape[0])))
