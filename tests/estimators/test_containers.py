"""The same numbers in whatever a user has them in give the same model; what cannot be taken is refused in words."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.sources.open_source import open_source

pa = pytest.importorskip("pyarrow")
rng = np.random.default_rng(5)
X = rng.poisson(0.8, (60, 7))
Y = np.array(["ham", "spam", "jam"])[rng.integers(0, 3, 60)]
CODES = rng.integers(0, 3, 60)
WEIGHTS = rng.integers(0, 4, 60)
NAMES = ["a", "b", "c", "d", "e", "f", "g"]
FRAME = pd.DataFrame(X, columns=NAMES)


def library(name: str) -> Any:
    return pytest.importorskip(name)


class Wrapped(sparse.csr_matrix):
    """As views of other libraries are."""

    __module__ = "elsewhere"


class WrappedArray(np.ndarray):
    __module__ = "elsewhere"


def of_columns(kinds: list[Any]) -> pd.DataFrame:
    columns = {name: FRAME[name].astype(kinds[i % len(kinds)]) for i, name in enumerate(NAMES)}
    return pd.DataFrame(columns)


def xarray_of(values: Any) -> Any:
    return library("xarray").DataArray(values, dims=("document", "word"))


def dask_array(values: np.ndarray = X) -> Any:
    return library("dask.array").from_array(values, chunks=(25, 7))


FRAMES = {
    "objects": lambda: FRAME.astype(object),
    "some objects": lambda: FRAME.astype({"b": object, "d": object}),
    "decimals": lambda: FRAME.map(Decimal),
    "categories": lambda: FRAME.astype("category"),
    "some categories": lambda: FRAME.astype({"a": "category", "g": "category"}),
    "nullable": lambda: FRAME.astype("Int64"),
    "nullable floats": lambda: FRAME.astype("Float32"),
    "arrow": lambda: FRAME.astype(pd.ArrowDtype(pa.int64())),
    "arrow decimals": lambda: FRAME.astype(pd.ArrowDtype(pa.decimal128(30, 2))),
    "sparse": lambda: FRAME.astype(pd.SparseDtype(int, 0)),
    "sparse filled with NaN": lambda: FRAME.astype(pd.SparseDtype(float, np.nan)),
    "sparse filled with 1": lambda: FRAME.astype(pd.SparseDtype(int, 1)),
    "of every kind": lambda: of_columns(
        [object, "category", "Int64", pd.ArrowDtype(pa.int32()), pd.SparseDtype(int, 0), "uint8", "float32"]
    ),
    "pyarrow": lambda: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow dictionaries": lambda: pa.table({name: pa.array(FRAME[name]).dictionary_encode() for name in NAMES}),
    "pyarrow of chunks": lambda: pa.concat_tables(
        [pa.table(dict(zip(NAMES, part.T, strict=True))) for part in (X[:7], X[7:7], X[7:])]
    ),
    "polars": lambda: library("polars").DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "polars decimals": lambda: library("polars").DataFrame(dict(zip(NAMES, X.T, strict=True))).cast(
        library("polars").Decimal(10, 2)
    ),
}  # fmt: skip
ARRAYS = {
    "derived from scipy": lambda: Wrapped(X),
    "derived from numpy": lambda: X.view(WrappedArray),
    "masks nothing": lambda: np.ma.masked_array(X, np.zeros(X.shape, bool)),
    "objects": lambda: X.astype(object),
    "xarray": lambda: xarray_of(X),
    "xarray of xarray": lambda: library("xarray").Variable(("document", "word"), X),
    "xarray of dask": lambda: xarray_of(dask_array()),
    "xarray of sparse": lambda: xarray_of(library("sparse").COO.from_numpy(X)),
    "dask of objects": lambda: dask_array(X.astype(object)),
    "dask of views": lambda: dask_array().map_blocks(Wrapped, dtype=int),
}
KINDS = {**{f"{kind} frame": make for kind, make in FRAMES.items()}, **ARRAYS}
PLAIN = nfs.SparseMultinomialNB(k=4).fit(X, Y)


def computed(values: Any) -> np.ndarray:
    values = values.compute() if hasattr(values, "compute") else values
    return np.asarray(values.todense() if hasattr(values, "todense") else values)


def same(one: Any, other: Any) -> None:
    assert one.model_.support.tolist() == other.model_.support.tolist()
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.class_log_prior_, other.class_log_prior_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_that_of_the_plain_array(kind):
    given = KINDS[kind]()
    model = nfs.SparseMultinomialNB(k=4).fit(given, Y)
    same(model, PLAIN)
    np.testing.assert_array_equal(computed(model.predict_proba(given)), PLAIN.predict_proba(X))
    np.testing.assert_array_equal(computed(model.transform(given)), PLAIN.transform(X))
    assert model.score(given, Y) == PLAIN.score(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_one_that_is_added_to(kind):
    model = nfs.SparseMultinomialNB(k=4).partial_fit(X, Y, classes=sorted(set(Y)))
    plain = nfs.SparseMultinomialNB(k=4).fit(np.vstack([X, X]), [*Y, *Y])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")  # which the first documents had not
        same(model.partial_fit(KINDS[kind](), Y), plain)


@pytest.mark.parametrize("kind", ["polars frame", "pyarrow frame", "of every kind frame", "xarray", "xarray of dask"])
def test_paths_validations_and_stores_of_them(kind, tmp_path):
    given = KINDS[kind]()
    assert (
        nfs.path(given, "multinomial", [2, 3], y=Y).support(3).tolist()
        == nfs.path(X, "multinomial", [2, 3], y=Y).support(3).tolist()
    )
    grid = {"method": "multinomial", "ks": [2, 4], "folds": np.arange(60) % 3}
    found = nfs.cross_validate(given, Y, **grid)
    np.testing.assert_array_equal(found.scores(k=4), nfs.cross_validate(X, Y, **grid).scores(k=4))
    dataset = nfs.ingest(given, tmp_path / "s.zarr", labels=Y)
    same(nfs.SparseMultinomialNB(k=4).fit(dataset), PLAIN)
    assert dataset.names(np.arange(7)) == (NAMES if kind.endswith("frame") else None)


@pytest.mark.parametrize("kind", FRAMES)
def test_features_are_called_as_the_columns_of_any_frame(kind):
    given = FRAMES[kind]()
    model = nfs.SparseMultinomialNB(k=4, always=["g"]).fit(given, Y)
    assert model.feature_names_in_.tolist() == NAMES
    assert "g" in model.get_feature_names_out()
    other = nfs.SparseMultinomialNB(k=4).fit(FRAME, Y)
    other.predict(given)
    wrong = pa.table(dict(zip(reversed(NAMES), X.T, strict=True)))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(wrong)


def test_a_model_from_a_file_holds_any_frame_to_its_names(tmp_path):
    PLAIN_FRAME = nfs.SparseMultinomialNB(k=4).fit(FRAME, Y)
    PLAIN_FRAME.save(tmp_path / "m.model")
    model = nfs.load_model(tmp_path / "m.model")
    for make in FRAMES.values():
        np.testing.assert_array_equal(model.predict(make()), PLAIN.predict(X))
    with pytest.raises(InputError, match="column .* is named '.', and the model was fitted with '.' there"):
        model.predict(pa.table(dict(zip(reversed(NAMES), X.T, strict=True))))


LABELS = {
    "list": lambda y: list(y),
    "objects": lambda y: y.astype(object),
    "series": lambda y: pd.Series(y, index=np.arange(60) + 9),
    "category": lambda y: pd.Series(y, dtype="category"),
    "strings": lambda y: pd.Series(y, dtype="string" if y.dtype.kind == "U" else "Int64"),
    "arrow series": lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.array(y).type)),
    "pyarrow": lambda y: pa.array(y),
    "pyarrow chunks": lambda y: pa.chunked_array([y[:9], y[9:]]),
    "pyarrow dictionary": lambda y: pa.array(y).dictionary_encode(),
    "polars": lambda y: library("polars").Series(y.tolist()),
    "xarray": lambda y: library("xarray").DataArray(y),
    "masks nothing": lambda y: np.ma.masked_array(y, np.zeros(60, bool)),
    "dask": lambda y: library("dask.array").from_array(y, chunks=25),
    "xarray of dask": lambda y: library("xarray").DataArray(library("dask.array").from_array(y, chunks=25)),
}  # fmt: skip


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("y", [Y, CODES], ids=["texts", "numbers"])
def test_labels_and_weights_of_every_kind(kind, y):
    plain = nfs.SparseMultinomialNB(k=4).fit(X, y, WEIGHTS)
    model = nfs.SparseMultinomialNB(k=4).fit(X, LABELS[kind](y), LABELS[kind](WEIGHTS))
    assert model.classes_.tolist() == plain.classes_.tolist() and model.classes_.dtype == plain.classes_.dtype
    same(model, plain)
    assert model.score(X, LABELS[kind](y), LABELS[kind](WEIGHTS)) == plain.score(X, y, WEIGHTS)


@pytest.mark.parametrize("kind", ["list", "polars", "pyarrow", "pyarrow chunks"])
def test_missing_labels_of_every_kind_are_no_label(kind):
    codes = [None if i % 4 == 0 else int(code) for i, code in enumerate(CODES)]
    make = {"list": list, "pyarrow": pa.array, "pyarrow chunks": lambda y: pa.chunked_array([y[:9], y[9:]])}
    given = make[kind](codes) if kind in make else library("polars").Series(codes)
    source = open_source(X, given)
    assert source.classes.tolist() == [0, 1, 2] and source.classes.dtype == np.int64
    block = next(source.blocks(0, 1))
    assert [None if code < 0 else source.classes[code] for code in block.codes] == codes


@pytest.mark.parametrize("weight", [2, 2.0, np.int64(2), np.float32(2)])
@pytest.mark.parametrize("given", [X, pytest.param("dask", id="dask")])
def test_one_weight_is_that_of_all(weight, given):
    given = dask_array() if isinstance(given, str) else given
    same(nfs.SparseMultinomialNB(k=4).fit(given, Y, weight), nfs.SparseMultinomialNB(k=4).fit(X, Y, np.full(60, 2)))
    assert PLAIN.score(X, Y, weight) == PLAIN.score(X, Y)


def refused(make: Any, message: str) -> Any:
    return pytest.param(make, message, id=message[:30])


MASKED = np.ma.masked_array(X, X == 2)
REFUSED = [
    refused(lambda: (MASKED, Y), r"X is a masked array.*X.filled\(0\)"),
    refused(lambda: (X, np.ma.masked_array(CODES, CODES == 1)), "y is a masked array"),
    refused(lambda: (X, Y, np.ma.masked_array(WEIGHTS, CODES == 1)), "sample_weight is a masked array"),
    refused(lambda: (xarray_of(MASKED).where(X != 2), Y), "NaN"),
    refused(lambda: (library("xarray").Dataset({"n": xarray_of(X)}), Y), r"several variables; .* X\['n'\]"),
    refused(lambda: (library("polars").LazyFrame({"a": [1]}), Y), r"lazy frame of polars; give X.collect\(\)"),
    refused(lambda: (FRAME.assign(b="x"), Y), "column 'b' of X has type .*not a number"),
    refused(lambda: (FRAME.assign(b=pd.Series(["x"] * 60, dtype="category")), Y), "column 'b' of X has type category"),
    refused(lambda: (FRAME.assign(b=pd.Timestamp(0)), Y), "column 'b' of X has type datetime64"),
    refused(lambda: (FRAME.assign(b=pd.Series([pd.NA] * 60, dtype=object)), Y), "column 'b' of X has type object"),
    refused(lambda: (FRAME.astype("Int64").mask(X == 2), Y), "NaN"),
    refused(lambda: (FRAME.astype(object).mask(X == 2, None), Y), "NaN"),
    refused(lambda: (pa.table({"a": ["x"] * 60, "b": X[:, 0]}), Y), "column 'a' of X has type string"),
    refused(lambda: (pa.table({"a": [None] * 60, "b": X[:, 0]}), Y), "NaN"),
    refused(lambda: (pa.array(X[:, 0]), Y), "X is an Int64Array of pyarrow, which is one column"),
    refused(lambda: (library("polars").DataFrame({"a": ["x"] * 60}), Y), "column 'a' of X has type String"),
    refused(lambda: (library("polars").DataFrame({"a": [1, None] * 30, "b": X[:, 0]}), Y), "NaN"),
    refused(lambda: (library("polars").Series(X[:, 0]), Y), "X is a Series of polars, which is one column"),
    refused(lambda: (X, set(Y)), "y is a set; give a list or an array"),
    refused(lambda: (X, dict(enumerate(Y))), "y is a dict; give"),
    refused(lambda: (X, (one for one in Y)), "y is a generator; give"),
    refused(lambda: (X, "ham"), "y is a single value, 'ham'; give"),
    refused(lambda: (X, Y, ["1"] * 60), "sample_weight holds .* values; give numbers"),
    refused(lambda: (X, Y, [None, 1.0] * 30), "sample_weight nan in row 0"),
    refused(lambda: (X, Y, -1.0), "sample_weight -1.0 in row 0"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_cannot_be_taken_is_refused_in_words(make, message):
    with pytest.raises(InputError, match=message):
        nfs.SparseMultinomialNB(k=2).fit(*make())


def test_rows_to_judge_by_need_labels():
    with pytest.raises(InputError, match="y has no label for row 7; leave such rows out"):
        PLAIN.score(X, [None if i == 7 else label for i, label in enumerate(Y)])


def test_masks_are_found_in_chunks_too():
    masked = library("dask.array").from_array(MASKED, chunks=(25, 7))
    with pytest.raises(InputError, match="masked array"):
        nfs.SparseMultinomialNB(k=2).fit(masked, Y)


def test_views_of_sparse_matrices_stay_sparse():
    assert sparse.issparse(PLAIN.transform(Wrapped(X)))
