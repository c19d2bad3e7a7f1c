"""Columns of Arrow's record batches as strings, labels and weights; texts share Arrow's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import is_arrow, library_of
from nfs_dask.documents.checking import BATCH_DOCUMENTS, Checker, TextColumn, check_columns, later
from nfs_dask.documents.decoding import is_utf8, to_utf8
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.errors import InputError
from nfs_dask.text.strings import Strings

STRINGS_OF_POLARS = (
    "String",
    "Categorical",
    "Enum",
)  # names of its types


def check_schema(path: str, schema: Any, columns: TextColumns) -> Sequence[str]:
    """Return the columns of a table; refuse one that lacks what is asked for, or has it in a type of no use."""
    check_columns(path, schema.names, columns)
    wanted: list[tuple[str, str | None, Callable[[Any], bool], str]] = [
        ("text_column", name, _holds_text, "strings or bytes") for name in columns.text
    ]
    wanted.append(("label_column", columns.label, _holds_labels, "strings, whole numbers, booleans or floats"))
    wanted.append(("weight_column", columns.weight, _holds_numbers, "numbers"))
    for option, name, allowed, names in wanted:
        if name is None:
            continue
        kind = schema.field(name).type
        if not (_holds_nothing(kind) or allowed(plain(kind))):
            raise InputError(f"{path}: {option}={name!r} holds {kind}; give a column of {names}")
    there: list[str] = schema.names
    return there


def plain(kind: Any) -> Any:
    """The type of the values, where each is kept once and referred to by number."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _holds_nothing(kind: Any) -> bool:
    """Whether all values are missing: so pandas writes a column of objects that has no values."""
    import pyarrow as pa

    return pa.types.is_null(kind)


def holds_strings(kind: Any) -> bool:
    """Whether values of a type are strings, however they are laid out."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def lie_in_a_row(kind: Any) -> bool:
    """Whether texts of a type are one buffer of bytes and where each begins."""
    import pyarrow as pa

    sorts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_sort(kind) for is_sort in sorts)


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    sorts = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_sort(kind) for is_sort in sorts)


def _holds_text(kind: Any) -> bool:
    return holds_strings(kind) or _holds_bytes(kind)


def _holds_numbers(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _holds_labels(kind: Any) -> bool:
    import pyarrow as pa

    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return plain or holds_strings(kind)


def batches_of(table: Any, columns: TextColumns, where: Callable[[int], str]) -> Iterator[Batch]:
    """The good documents of a table of texts, or bytes of such, and plain values; ``where`` names row i."""
    table = table.combine_chunks()
    for start in range(0, table.num_rows, BATCH_DOCUMENTS):
        part = {name: table[name].chunk(0)[start : start + BATCH_DOCUMENTS] for name in table.column_names}
        labels, weights = (
            None if name is None else TextColumn(values_of(part[name]).tolist())
            for name in (columns.label, columns.weight)
        )
        texts = [texts_of(part[name], "utf-8") for name in columns.text]
        others = {name: values_of(part[name]).tolist() for name in columns.others}
        yield Checker(columns).batch(texts, labels, weights, later(where, start), others=others)


def texts_of(array: Any, encoding: str) -> TextColumn:
    """Strings over the buffers of an Arrow array; only strings in another layout or encoding are copied."""
    import pyarrow as pa

    values = _decoded(array)
    present = _present(values)
    if _holds_bytes(values.type) and not is_utf8(encoding):
        return TextColumn(Strings.of(to_utf8(value or b"", encoding) for value in values.to_pylist()), present)
    if not lie_in_a_row(values.type):
        values = values.cast(pa.large_binary())
    _, edges, content = values.buffers()
    if not len(values):
        return TextColumn(Strings.of([]))
    wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    offsets = np.frombuffer(edges, np.int64 if wide else np.int32)[values.offset : values.offset + len(values) + 1]
    text = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    return TextColumn(Strings(offsets.astype(np.int64), text), present)


def labels_of(array: Any, path: str) -> TextColumn:
    """Labels as they are: an array of integers, booleans or floats, or of Python's strings."""
    import pyarrow as pa

    values = _decoded(array)
    present = _present(values)
    if holds_strings(values.type):
        try:
            return TextColumn(values_of(values.cast(pa.large_string())), present)
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: a label is not valid UTF-8 ({error}); write the labels again") from None
    if pa.types.is_boolean(values.type):
        return TextColumn(_integers(values.cast(pa.int8())) != 0, present)
    if pa.types.is_integer(values.type):
        return TextColumn(_integers(values), present)
    return TextColumn(values.to_numpy(zero_copy_only=False), present)


def _integers(values: Any) -> Array:
    """Whole numbers, with anything in the place of missing ones.

    Arrow's own ways turn them into floats, or into objects, or fill them with scalars, which imports pandas.
    """
    content = values.buffers()[1]
    kind = np.dtype(str(values.type))
    return (
        np.frombuffer(content, kind)[values.offset : values.offset + len(values)] if len(values) else np.zeros(0, kind)
    )


def values_of(array: Any) -> Array:
    """Python's values, None where they are missing; each distinct one is made once.

    Bytes are text in UTF-8, in which those that are none come as halves of characters.
    """
    import pyarrow as pa

    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    if pa.types.is_binary(array.type):
        distinct = [value.decode("utf-8", "surrogateescape") for value in distinct]
    made = np.empty(len(distinct) + 1, object)
    made[:-1], made[-1] = distinct, None
    numbers, present = _integers(encoded.indices), _present(encoded)
    return made[numbers if present is None else np.where(present, numbers, -1)]


def weights_of(array: Any) -> TextColumn:
    """Weights as floating-point numbers; missing ones are NaN, and not present."""
    import pyarrow as pa

    values = _decoded(array)
    return TextColumn(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), _present(values))


def _decoded(array: Any) -> Any:
    import pyarrow as pa

    if _holds_nothing(array.type):
        return array.cast(pa.string())
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _present(array: Any) -> Array | None:
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def are_strings(dtype: Any) -> bool | None:
    """Whether values of a type of some library are strings; None where only the values themselves can tell.

    Names of types say little: each release of pandas has others.

    >>> are_strings(np.dtype("U3")), are_strings(np.dtype("f8")), are_strings(np.dtype("O"))
    (True, False, None)
    """
    library = library_of(dtype)
    if library == "polars":
        name = str(dtype).partition("(")[0]
        return None if name == "Object" else name in STRINGS_OF_POLARS
    if library == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        return holds_strings(plain(getattr(dtype, "pyarrow_dtype", dtype)))
    if hasattr(dtype, "categories"):
        return None if dtype.categories is None else are_strings(dtype.categories.dtype)
    kind = getattr(dtype, "type", np.object_)
    return None if kind is np.object_ else isinstance(kind, type) and issubclass(kind, str)


def strings_by_arrow(texts: Sequence[str]) -> Strings:
    """Python's strings, encoded by Arrow; a surrogate raises UnicodeEncodeError."""
    import pyarrow as pa

    strings = texts_of(pa.array(texts, pa.large_string()), "utf-8").values
    strings.text.flags.writeable = False  # as bytes of Python are: kernels are compiled for these
    return strings


def in_arrow(column: Any) -> Any:
    """A column or an array of pandas or pyarrow as Arrow's array, which may be of several chunks."""
    import pyarrow as pa

    return column if is_arrow(column) else pa.array(getattr(column, "array", column))


def lie_in_arrow(dtype: Any) -> bool:
    """Whether texts of a type of pandas or pyarrow lie in Arrow's memory, one after another."""
    if library_of(dtype) == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        return lie_in_a_row(getattr(dtype, "pyarrow_dtype", dtype))
    return str(getattr(dtype, "storage", "")).startswith("pyarrow")
