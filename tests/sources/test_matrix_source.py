from __future__ import annotations

import pickle
import time

import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.errors import InputError
from nfs_dask.sources import block_cuts as cutting
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.sources.source import Source
from tests.helpers.strategies import labelled_csr
from tests.helpers.truth import assert_counts


def example(dtype="int64"):
    rng = np.random.default_rng(7)
    X = rng.integers(0, 5, (23, 11)) * (rng.random((23, 11)) < 0.3)
    return X.astype(dtype), rng.choice(["ham", "spam", "eggs"], 23)


FORMS = {
    "numpy": np.asarray,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "matrix": sparse.csr_matrix,
    "array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "csc_array": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "dok": sparse.dok_array,
    "COO": pydata.COO,
    "GCXS-rows": lambda X: pydata.GCXS(X, compressed_axes=(0,)),
    "GCXS-columns": lambda X: pydata.GCXS(X, compressed_axes=(1,)),
    "DOK": lambda X: pydata.COO(X).asformat("dok"),
    "frame": pd.DataFrame,
    "sparse-frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that little data make many of them."""
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 300)
    monkeypatch.setattr(cutting, "_PIECE", 4)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "float64", ">i4", "float16"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_counts_like_numpy(form, dtype, small_blocks):
    if dtype in (">i4", "float16") and form not in ("numpy", "fortran"):
        pytest.skip("only numpy holds these everywhere")
    if (form, dtype) == ("sparse-frame", "bool"):
        pytest.skip("pandas warns about its own fill value")
    X, y = example(dtype)
    source = MatrixSource(FORMS[form](X), y)
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features, source.in_memory) == (23, 11, True)
    assert source.n_blocks > 2
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert_counts(source, X, y)


@pytest.mark.parametrize("form", ["numpy", "matrix", "COO", "frame"])
def test_reals_and_weights(form, small_blocks):
    X, y = example("float64")
    X /= 3
    weights = np.random.default_rng(0).integers(0, 4, 23)
    assert_counts(MatrixSource(FORMS[form](X), y, weights), X, y, weights)
    assert_counts(MatrixSource(FORMS[form](X), y, weights / 7), X, y, weights / 7)


@given(labelled_csr(), st.integers(30, 400), st.integers(1, 5))
def test_awkward_rows_count_like_numpy(data, budget, piece):
    X, y = data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "BLOCK_NBYTES", budget)
        patch.setattr(cutting, "_PIECE", piece)
        source = MatrixSource(X, y)
    dense = np.zeros(X.shape, np.float64)
    np.add.at(dense, (np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices), X.data.astype(np.float64))
    if X.dtype == bool and dense.max(initial=0) > 1:
        return  # what twice True means is nobody's business
    assert_counts(source, dense, y)
    first_rows = [block.first_row for block in source.blocks(0, source.n_blocks)]
    assert first_rows == source._cuts.rows[:-1].tolist()
    assert source.nnz == X.indptr[-1]


def test_any_range_of_blocks_can_be_read(small_blocks):
    X, y = example()
    source = MatrixSource(sparse.csr_array(X), y)
    whole = list(source.blocks(0, source.n_blocks))
    part = list(source.blocks(1, 3))
    assert [b.number for b in part] == [1, 2]
    assert [b.data.tolist() for b in part] == [b.data.tolist() for b in whole[1:3]]


def test_rows_of_csr_are_not_copied():
    X, y = example()
    csr = sparse.csr_matrix(X)
    (block,) = MatrixSource(csr, y).blocks(0, 1)
    assert np.shares_memory(block.data, csr.data)
    assert np.shares_memory(block.indices, csr.indices)
    coo = pydata.COO(X)
    (block,) = MatrixSource(coo, y).blocks(0, 1)
    assert np.shares_memory(block.data, coo.data)
    assert np.shares_memory(block.indices, coo.coords)


def test_skewed_rows_make_blocks_of_bounded_entries(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 4000)
    lengths = np.r_[np.zeros(500, int), 1000, np.ones(500, int), 150, 150, 150]
    indptr = np.r_[0, np.cumsum(lengths)]
    X = sparse.csr_matrix((np.ones(indptr[-1]), np.concatenate([np.arange(n) for n in lengths]), indptr), (1004, 1000))
    source = MatrixSource(X, np.arange(1004) % 2)
    sizes = [(block.n_rows, block.nnz) for block in source.blocks(0, source.n_blocks)]
    assert (1, 1000) in sizes  # too large, so alone
    assert all(rows * cutting.ROW_NBYTES + nnz * 12 <= 4000 for rows, nnz in sizes if nnz != 1000)
    assert_counts(source, X.toarray(), np.arange(1004) % 2)


def test_offsets_are_64_bit_and_columns_keep_their_type():
    X = sparse.csr_matrix(example()[0])
    assert X.indices.dtype == np.int32
    (block,) = MatrixSource(X).blocks(0, 1)
    assert (block.indptr.dtype, block.indices.dtype) == (np.int64, np.int32)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    (block,) = MatrixSource(X).blocks(0, 1)
    assert block.indices.dtype == np.int64


def test_more_than_2_to_the_31_entries_are_cut_right():
    """Row pointers beyond 32 bits, over one shared row of memory."""
    ends = np.arange(0, 5 * 2**30 + 1, 2**20)
    cuts = cutting.cut_by_entries(cutting.in_pieces(ends), 8)
    assert cuts.n_rows == 5 * 2**10
    assert cuts.entries[-1] == 5 * 2**30
    assert cuts.block_nbytes(8) <= cutting.BLOCK_NBYTES
    assert cuts.entries.dtype == np.int64


@pytest.mark.parametrize(
    ("dtype", "kind"), [("bool", "binary"), ("uint16", "count"), ("int8", None), ("float32", None)]
)
def test_the_type_tells_the_kind(dtype, kind):
    assert MatrixSource(example(dtype)[0]).kind == kind


def test_names():
    X, y = example()
    names = [f"word {i}" for i in range(11)]
    assert MatrixSource(X, y).names(np.array([1])) is None
    assert MatrixSource(X, y, names=names).names(np.array([7, 1])) == ["word 7", "word 1"]
    assert MatrixSource(pd.DataFrame(X, columns=names), y).names(np.array([10])) == ["word 10"]
    assert MatrixSource(pd.DataFrame(X), y).names(np.array([0])) is None
    with pytest.raises(InputError, match="11 columns but 10 names"):
        MatrixSource(X, y, names=names[1:])


def test_frames_of_several_types():
    frame = pd.DataFrame({"a": [True, False, True], "b": np.array([1, 2, 0], "uint8"), "c": [0.5, 0, 1]})
    assert_counts(MatrixSource(frame, [0, 1, 1]), frame.to_numpy(float), [0, 1, 1])
    frame = pd.DataFrame({"a": pd.array([1, 2, 0], "Int64"), "b": pd.array([True, False, True], "boolean")})
    assert_counts(MatrixSource(frame, [0, 1, 1]), np.array([[1, 1], [2, 0], [0, 1]]), [0, 1, 1])


def test_missing_values_reach_the_check_that_names_them():
    for X in (
        np.array([[0, 1.0], [np.nan, 0]]),
        pd.DataFrame({"a": [0, np.nan], "b": [1.0, 0]}),
        pd.DataFrame({"a": pd.array([0, None], "Int64"), "b": [1.0, 0]}),
    ):
        with pytest.raises(InputError, match="NaN value nan in row 1, column 0"):
            assert_counts(MatrixSource(X, [0, 1]), np.zeros((2, 2)), [0, 1])


def test_without_labels_rows_are_unlabelled():
    source = MatrixSource(example()[0])
    (block,) = source.blocks(0, 1)
    assert source.classes is None
    assert set(block.codes.tolist()) == {-1}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(3), "1 dimension.*Reshape your data"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        (np.float64(3), "0 dimension"),
        (sparse.coo_array([1, 0, 2]), "1 dimension"),
        (pydata.COO(np.zeros((2, 2, 2))), "3 dimension"),
        (pd.Series([1, 2]), "to_frame"),
        (np.array([["a", "b"]]), "ingest text"),
        (np.array([[{}, 1]], object), "object"),
        (np.array([[1j, 0]]), "Complex data not supported"),
        (pd.DataFrame({"n": [1], "city": ["Oslo"]}), "column 'city' of X has type (object|str),"),
        (pd.DataFrame({"c": pd.Categorical(["a"])}), "column 'c'"),
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (sparse.csr_matrix((0, 3)), "0 sample"),
        (pd.DataFrame(index=[0, 1]), "0 feature"),
        (np.ma.masked_array([[1, 2]], [[True, False]]), "masked"),
        (pydata.COO(np.ones((2, 2)), fill_value=1), "fill value 1"),
        ({"a": 1}, "dict; give a numpy array"),
        ([[1, 2], [3]], "list that is no table.*; give rows of equal length"),
    ],
    ids=lambda x: getattr(x, "__name__", type(x).__name__) if not isinstance(x, str) else x[:12],
)
def test_what_is_not_a_matrix_is_refused(X, message):
    with pytest.raises(InputError, match=message):
        MatrixSource(X)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([0, 1], None, "there are 23 rows but 2 labels"),
        (np.zeros(23, int), [1, 2], "X has 23 rows but sample_weight has 2 entries"),
    ],
)
def test_shapes_must_agree(y, weights, message):
    with pytest.raises(InputError, match=message):
        MatrixSource(example()[0], y, weights)


@pytest.mark.parametrize("indptr", [[1, 2, 3], [0, 2, 9], [0, 3, 2]])
def test_damaged_row_pointers_are_refused(indptr):
    X = sparse.csr_matrix((np.ones(3), [0, 1, 0], [0, 2, 3]), (2, 2))
    X.indptr = np.array(indptr)
    with pytest.raises(InputError, match="damaged"):
        MatrixSource(X)


def test_unsorted_coordinates_are_converted():
    X = pydata.COO(np.array([[1, 0], [0, 1]]), np.array([5, 7]), (2, 2), sorted=True, has_duplicates=False)
    assert_counts(MatrixSource(X, [0, 1]), np.array([[0, 7], [5, 0]]), [0, 1])


def test_it_travels():
    X, y = example()
    source = pickle.loads(pickle.dumps(MatrixSource(sparse.csr_array(X), y, np.ones(23))))
    assert_counts(source, X, y)


def test_looking_at_blocks_costs_next_to_nothing():
    rng = np.random.default_rng(0)
    n = 3_400_000
    columns, indptr = rng.integers(0, 27_000, n, np.int32), np.linspace(0, n, 25_001, dtype=np.int32)
    X = sparse.csr_matrix((np.ones(n, np.uint8), columns, indptr))
    coordinates = np.stack([np.repeat(np.arange(25_000), np.diff(indptr)), columns])
    coo = pydata.COO(coordinates, X.data, X.shape, sorted=True, has_duplicates=False)

    def seconds(matrix):
        best = np.inf
        for _ in range(10):
            start = time.thread_time()
            source = MatrixSource(matrix)
            blocks = [block.nnz for block in source.blocks(0, source.n_blocks)]
            best = min(best, (time.thread_time() - start) / len(blocks))
        return best

    assert seconds(X) < 3e-3  # measured: 0.1 ms
    assert seconds(coo) < 10e-3  # measured: 1 ms; counting these entries takes 5
