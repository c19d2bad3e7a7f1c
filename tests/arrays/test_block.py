"""The door checks name what is wrong and where; mending duplicates and narrowing floats change no number."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB

from nfs_dask.arrays.block import (
    Block,
    canonical,
    check_labels,
    check_structure,
    check_values,
    distinct,
    empty_block,
    integers_as_integers,
    safe_to_compute,
    smallest_integer,
)
from nfs_dask.errors import InputError
from tests.helpers.strategies import awkward_csr

FLOATS = ["float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]


def example(**changes: Any) -> Block:
    """Rows 100 .. 103 of the data: two entries, none, one, one."""
    block = Block(
        indptr=np.array([0, 2, 2, 3, 4]),
        indices=np.array([0, 4, 3, 1], np.int32),
        data=np.array([1.0, 2.0, 3.0, 4.0]),
        codes=np.array([0, 1, 1, 0], np.int32),
        n_features=5,
        first_row=100,
        number=7,
    )
    return replace(block, **changes)


def of_matrix(matrix: Any) -> Block:
    codes = np.zeros(matrix.shape[0], np.int32)
    return Block(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, codes, matrix.shape[1])


def test_kernels_meet_few_types() -> None:
    """Each other type, and each kind of array, would be compiled anew."""
    block = example(codes=np.array([0, 1, 1, 0], np.int8), indptr=np.array([0, 9, 2, 9, 2, 9, 3, 9, 4])[::2])
    frozen = example(data=np.frombuffer(block.data.tobytes()))
    for one, other in zip(block.entries, frozen.entries, strict=True):
        assert numba.typeof(one) == numba.typeof(other)
        np.testing.assert_array_equal(one, other)
        assert not one.flags.writeable
    assert np.shares_memory(block.entries.data, block.data) and block.data.flags.writeable


def entries(block: Block) -> list[dict[int, Fraction]]:
    """Each row as exact sums by column, by Python's own arithmetic."""
    rows = []
    for start, stop in zip(block.indptr[:-1], block.indptr[1:], strict=True):
        row: dict[int, Fraction] = {}
        for j in range(start, stop):
            column = int(block.indices[j])
            row[column] = row.get(column, Fraction(0)) + Fraction(block.data[j].item())
        rows.append(row)
    return rows


# Structure


def test_a_sound_block_passes() -> None:
    for block in (example(), example(weights=np.ones(4)), empty_block(3)):
        check_structure(block)
        check_labels(block, 2)
        check_values(block, "real")


@pytest.mark.parametrize(
    "indptr",
    [[0, 2, 1, 3, 4], [0, 2, 2, 3, 5], [0, 2, 2, 3, 3], [1, 2, 2, 3, 4], [0, 9, 2, 3, 4], [-1, 2, 2, 3, 4], [4], []],
)
def test_row_pointers_that_decrease_overrun_or_miss_are_refused(indptr: list[int]) -> None:
    with pytest.raises(InputError, match=r"block 7 \(rows from 100\): row pointers do not describe its 4 entries"):
        check_structure(example(indptr=np.array(indptr, np.int64)))


def test_values_must_be_as_many_as_columns() -> None:
    with pytest.raises(InputError, match="block 7 .* row pointers do not describe its 4 entries"):
        check_structure(example(data=np.ones(3)))


def test_labels_and_weights_must_be_as_many_as_rows() -> None:
    with pytest.raises(InputError, match="block 7 .*4 rows but 3 labels"):
        check_structure(example(codes=np.zeros(3, int)))
    with pytest.raises(InputError, match="block 7 .*4 rows but 5 sample weights"):
        check_structure(example(weights=np.ones(5)))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_a_column_out_of_range_is_named(dtype: str) -> None:
    """Also a negative one in data with more columns than its type has numbers."""
    info = np.iinfo(dtype)
    for n_features in (5, 126, 254, 255, 256, 65_535, 2**16, 2**32, 2**40):
        outside = [c for c in (-1, -2, info.min, n_features, info.max) if not 0 <= c < n_features]
        for column in [c for c in outside if info.min <= c <= info.max]:
            block = example(indices=np.array([0, 4, column, 1], dtype), n_features=n_features)
            with pytest.raises(InputError, match=f"row 102, column {column}: the data have {n_features} columns"):
                check_structure(block)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_the_largest_column_that_fits_passes(dtype: str) -> None:
    most = int(np.iinfo(dtype).max)
    check_structure(example(indices=np.array([0, 1, most, 3], dtype), n_features=most + 1))


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "complex128", "object", ">f8", "U1", "M8[s]"])
def test_values_of_types_that_kernels_do_not_take_are_refused(dtype: str) -> None:
    with pytest.raises(InputError, match="block 7 .*values of type .*; convert them"):
        check_structure(example(data=np.zeros(4, dtype)))


@pytest.mark.parametrize("part", ["indptr", "indices", "codes"])
@pytest.mark.parametrize("dtype", ["float64", ">i4", "object"])
def test_pointers_columns_and_labels_are_whole_numbers(part: str, dtype: str) -> None:
    with pytest.raises(InputError, match="block 7 .*they are whole numbers"):
        check_structure(example(**{part: getattr(example(), part).astype(dtype)}))
    with pytest.raises(InputError, match="block 7 .*2 dimension"):
        check_structure(example(codes=np.zeros((4, 1), int)))


# Labels


@pytest.mark.parametrize("dtype", SIGNED)
def test_a_missing_label_is_named_by_row(dtype: str) -> None:
    for code in (-1, 2, 100, -100):
        with pytest.raises(InputError, match="row 102: label missing; give every document"):
            check_labels(example(codes=np.array([0, 1, code, 0], dtype)), 2)
    check_labels(empty_block(3), 0)


def test_the_first_bad_label_is_the_one_named() -> None:
    with pytest.raises(InputError, match="row 101"):
        check_labels(example(codes=np.array([1, 5, -1, 0])), 2)
    with pytest.raises(InputError, match="row 103"):
        check_labels(example(codes=np.array([0, 1, 1, 2**63], np.uint64)), 2)


# Values


@pytest.mark.parametrize("kind", ["binary", "count", "real", "signed"])
def test_values_that_are_not_finite_are_named(kind: Any) -> None:
    for dtype, value, entry in itertools.product(FLOATS, (np.nan, -np.nan, np.inf, -np.inf), (0, 2)):
        data = np.ones(4, dtype)
        data[entry] = value
        word, place = "NaN" if np.isnan(value) else "infinite", {0: "row 100, column 0", 2: "row 102, column 3"}[entry]
        with pytest.raises(InputError, match=f"^{word} value .* in {place}; this method takes finite values"):
            check_values(example(data=data), kind)


@pytest.mark.parametrize("dtype", FLOATS + SIGNED)
@pytest.mark.parametrize("kind", ["binary", "count", "real"])
def test_negative_values_are_named_unless_the_method_takes_them(dtype: str, kind: Any) -> None:
    block = example(data=np.array([1, 2, 0, -3], dtype))
    with pytest.raises(InputError, match=r"^negative value -3\S* in row 103, column 1; .* zero or more"):
        check_values(block, kind)
    check_values(block, "signed")


@pytest.mark.parametrize("dtype", [*UNSIGNED, *SIGNED, *FLOATS, "bool"])
def test_the_extremes_of_a_type_pass(dtype: str) -> None:
    limits = np.finfo(dtype) if dtype in FLOATS else None if dtype == "bool" else np.iinfo(dtype)
    most = 1 if limits is None else limits.max
    check_values(example(data=np.array([0, 1, most, 0], dtype)), "real")
    if dtype in FLOATS:
        check_values(example(data=np.array([-0.0, np.finfo(dtype).tiny, 0, 0], dtype)), "real")
        check_values(example(data=np.full(4, np.finfo(dtype).min, dtype)), "signed")


# Duplicates


@given(matrix=awkward_csr())
def test_mending_equals_scipy(matrix: Any) -> None:
    block = of_matrix(matrix)
    before = [array.copy() for array in (block.indptr, block.indices, block.data)]
    want = matrix.astype(np.float64 if matrix.dtype.kind == "f" else np.int64)
    want.sum_duplicates()
    for mend in (canonical, distinct):
        got, mended = mend(block)
        check_structure(got)
        assert entries(got) == entries(of_matrix(want))
        assert got.nnz == want.nnz
        assert got.indptr.dtype == np.int64
        if not mended:
            assert got is block
    sorted_, changed = canonical(block)
    np.testing.assert_array_equal(sorted_.indices, want.indices)
    np.testing.assert_array_equal(sorted_.data, want.data)
    assert changed == (not block_is_canonical(block))
    assert distinct(block)[1] == any(
        len(set(r)) < len(r) for r in np.split(block.indices.tolist(), block.indptr[1:-1]) if len(r)
    )
    for array, old in zip((block.indptr, block.indices, block.data), before, strict=True):
        np.testing.assert_array_equal(array, old)


def block_is_canonical(block: Block) -> bool:
    rows = zip(block.indptr[:-1], block.indptr[1:], strict=True)
    return all(np.all(np.diff(block.indices[a:b].astype(np.int64)) > 0) for a, b in rows)


@pytest.mark.parametrize("wide", [False, True])  # a mark for each column, or sorting
def test_a_sum_of_duplicates_is_not_bound_by_their_type(wide: bool) -> None:
    columns = ["uint8", "int16", "uint32", "uint64", "int64"]
    for number, dtype in enumerate([*UNSIGNED, *SIGNED, *FLOATS]):
        most = 2**24 - 1 if dtype in FLOATS else min(np.iinfo(dtype).max, 2**60)
        block = Block(
            indptr=np.array([0, 3]),
            indices=np.array([2, 1, 2], columns[number % len(columns)]),
            data=np.array([most, 1, most], dtype),
            codes=np.array([0]),
            n_features=10**9 if wide else 3,
        )
        for mend in (canonical, distinct):
            assert entries(mend(block)[0]) == [{1: 1, 2: 2 * most}]


def test_counts_beyond_exact_integers_are_refused_not_wrapped() -> None:
    for value, dtype in ((2**62, "int64"), (2**61, "int64"), (2**63, "uint64"), (-(2**62), "int64")):
        block = example(indptr=np.array([0, 2]), indices=np.array([1, 1]), data=np.full(2, value, dtype), codes=[0])
        for mend in (canonical, distinct):
            with pytest.raises(InputError, match=r"block 7: counts of 2\^62 and more"):
                mend(replace(block, codes=np.zeros(1, int)))


def test_repeated_marks_add_up_as_scikit_learn_adds_them() -> None:
    X = sparse.csr_matrix((2, 2), dtype=bool)
    X.indptr, X.indices, X.data = np.array([0, 3, 4]), np.array([0, 0, 1, 1]), np.ones(4, bool)
    counted = MultinomialNB().fit(X, [0, 1]).feature_count_
    mended, _ = canonical(of_matrix(X))
    np.testing.assert_array_equal(sparse.csr_matrix((mended.data, mended.indices, mended.indptr)).toarray(), counted)


# Whole numbers


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("values", "held"),
    [
        ([0, 1, 255], "uint8"),
        ([0, 256], "uint16"),
        ([65536.0], "uint32"),
        ([2.0**32], "int64"),
        ([2.0**53], "int64"),
        ([2.0**61], "int64"),
        ([-0.0, 0.0], "uint8"),
        ([-128, 127], "int8"),
        ([-1, 128], "int16"),
        ([-(2.0**31), 1], "int32"),
        ([-(2.0**40), 1], "int64"),
        ([], "uint8"),
    ],
)
def test_whole_floats_become_the_smallest_integers(dtype: str, values: list[float], held: str) -> None:
    data = np.array(values, dtype)
    for order in (data, data[::-1].copy()):
        got = integers_as_integers(replace(empty_block(3), data=order)).data
        assert got.dtype == held
        assert [int(v) for v in got] == [int(v) for v in order]


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_value_that_is_no_integer_keeps_the_block_real(dtype: str) -> None:
    for odd in (0.5, np.nan, np.inf, -np.inf, 2.0**62, -(2.0**62), 2.0**100, 1e-30):
        for position in (0, 1, 4):
            data = np.array([1, 2, 300, 4, 0], dtype)
            data[position] = odd
            got = integers_as_integers(replace(empty_block(3), data=data)).data
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, data)


@given(st.lists(st.integers(0, 2**61)), st.sampled_from(["uint8", "int16", "uint64", "int64", "float64", "bool"]))
def test_whole_numbers_keep_their_values_and_mix_exactly(values: list[int], dtype: str) -> None:
    if dtype != "float64":
        values = [min(v, 1 if dtype == "bool" else int(np.iinfo(dtype).max)) for v in values]
    data = np.array(values, dtype)
    got = integers_as_integers(replace(empty_block(3), data=data)).data
    assert got.tolist() == [int(v) for v in data.tolist()]
    for other in ("uint8", "int8", "uint32", "int64"):  # blocks of one pass may come in several types
        assert np.result_type(got.dtype, other).kind in "iu"


def test_unsigned_counts_beyond_exact_integers_are_refused() -> None:
    for value in (2**62, 2**63, 2**64 - 1):
        with pytest.raises(InputError, match=r"block 7: counts of 2\^62"):
            integers_as_integers(example(data=np.array([1, 2, value, 0], np.uint64)))
    assert integers_as_integers(example(data=np.array([1, 2, 2**62 - 1, 0], np.uint64))).data[2] == 2**62 - 1


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_the_smallest_integer_type_holds_both_ends_and_a_smaller_one_does_not(a: int, b: int) -> None:
    low, high = sorted((a, b))
    chosen = smallest_integer(low, high)
    info = np.iinfo(chosen)
    assert info.min <= low
    assert high <= info.max
    for name in ("uint8", "uint16", "uint32") if low >= 0 else ("int8", "int16", "int32"):
        smaller = np.iinfo(name)
        if smaller.bits < info.bits:
            assert not smaller.min <= low <= high <= smaller.max


def test_what_fits_no_type_is_refused() -> None:
    with pytest.raises(InputError, match="do not fit 64 bits"):
        smallest_integer(0, 2**63)


# Places


def test_where_skips_empty_rows() -> None:
    block = example(indptr=np.array([0, 0, 0, 4, 4]))
    assert [block.where(entry) for entry in (0, 3)] == [
        "row 102, column 0",
        "row 102, column 1",
    ]
    assert example().where(1) == "row 100, column 4"
    assert example().where(2) == "row 102, column 3"


@pytest.mark.parametrize("name", [*UNSIGNED, "int8", "int16", "int32", "int64"])
def test_values_for_others_survive_what_is_done_to_counts(name):
    values = np.array([0, 1, min(np.iinfo(name).max, 2**30)], name)
    safe = safe_to_compute(values)
    assert safe.dtype.kind == "i"
    assert safe.dtype.itemsize >= 4
    assert (-safe - 1).tolist() == [-v - 1 for v in values.tolist()]


@pytest.mark.parametrize("name", ["bool", "float32", "float64"])
def test_other_values_stay_as_they_are(name):
    values = np.ones(3, name)
    assert safe_to_compute(values) is values


@pytest.mark.parametrize("width", [3, 1 << 30])
def test_rows_that_are_only_unsorted_have_no_column_twice(width: int) -> None:
    indptr, data, codes = np.array([0, 2, 3]), np.array([5, 6, 7]), np.zeros(2, np.int8)
    unsorted = Block(indptr, np.array([2, 0, 1]), data, codes, width)
    found, added = distinct(unsorted)
    assert not added
    assert sorted(zip(found.indices.tolist(), found.data.tolist(), strict=True)) == [(0, 6), (1, 7), (2, 5)]
    found, added = distinct(Block(indptr, np.array([2, 2, 1]), data, codes, width))
    assert added
    assert found.data.tolist() == [11, 7]
