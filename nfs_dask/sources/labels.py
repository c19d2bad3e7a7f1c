"""Labels as class codes, and sample weights as numbers that can be counted with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.containers import has_nulls, is_column, library_of, python_values, unwrapped
from nfs_dask.errors import DataWarning, InputError, warn

FEW_CLASSES = 32
MOST_FRACTIONS = 20  # classes written as numbers that are not whole, such as 3.5 stars; more are measurements
MANY_CLASSES = 1_000
MOST_CLASSES = 1 << 20  # more distinct labels than this are identifiers or measurements, not classes


def encode(y: Any, n_rows: int | None = None) -> tuple[Array, Array]:
    """The sorted distinct labels, and for each row the position of its label, or ``UNLABELLED`` for None and NaN.

    >>> classes, codes = encode(["spam", None, "ham", "spam"])
    >>> classes.tolist(), codes.tolist()
    (['ham', 'spam'], [1, -1, 0, 1])
    """
    values = as_column(y, "y")
    if n_rows is not None and len(values) != n_rows:
        raise InputError(f"there are {n_rows} rows but {len(values)} labels; give one label for each row")
    if _is_pandas(values):
        return _sorted(*_factorize_pandas(values))
    if values.dtype.kind in "iu":
        return _encode_integers(values)
    if values.dtype.kind == "b":
        classes, codes = _encode_integers(values.view(np.uint8))
        return classes.astype(bool), codes
    if values.dtype.kind == "f":
        return _encode_floats(values)
    if values.dtype.kind in "US":
        return _encode_text(values)
    if values.dtype.kind in "OT":
        return _sorted(*_factorize(values.tolist()))
    raise InputError(
        f"Unknown label type: y holds {values.dtype} values; give strings, integers or booleans, one for each row"
    )


def encode_as(y: Any, classes: Array) -> Array:
    """Codes of a part of the labels under the classes of the whole."""
    own, codes = encode(y)
    if not len(own):
        return codes
    position = np.searchsorted(classes, own).astype(np.int32)
    known = classes[np.minimum(position, len(classes) - 1)] == own
    if not np.all(known):
        raise InputError(f"y holds the label {own[~known][0].item()!r}, which was not there when its classes were read")
    return _through(position, codes)


def match_labels(labels: Array, codes: Array, classes: Array) -> tuple[Array, Array]:
    """Return labels, and codes of rows under them, as the classes of a model are: texts or numbers.

    CSV has texts where Parquet and JSON have numbers. A text is the whole number or boolean that it writes: "7", "007"
    and "7.0" are 7, "true" and "1" are True. Refused are texts that write none, and numbers that two classes write.

    >>> match_labels(np.array(["10", "9"]), np.array([0, 1, -1]), np.array([9, 10]))
    (array([ 9, 10]), array([ 1,  0, -1]))
    """
    as_numbers = labels.dtype.kind == "U"
    if not len(labels) or not len(classes) or as_numbers == (classes.dtype.kind == "U"):
        return labels, codes
    given, known = labels.tolist(), classes.tolist()
    texts = given if as_numbers else known
    numbers = [_number_in(text) for text in texts]
    if (None in numbers) if as_numbers else set(numbers) == {None}:
        raise InputError(
            f"labels such as {given[0]!r} cannot be compared with the classes of the model, such as {known[0]!r}: "
            f"{texts[numbers.index(None)]!r} writes no number; give labels of the same kind"
        )
    if as_numbers:
        found = np.array(numbers)
    else:
        written, wanted = dict[Any, str](), set(given)
        for text, number in zip(known, numbers, strict=True):
            if number in wanted and written.setdefault(number, text) != text:
                raise InputError(
                    f"the classes {written[number]!r} and {text!r} of the model both write the number {number}; give "
                    "labels of documents as texts"
                )
        found = np.array([written.get(number, str(number)) for number in given])
    labels, places = np.unique(found, return_inverse=True)
    return labels, np.append(places, UNLABELLED)[codes]


def _number_in(text: str) -> int | None:
    """The whole number that a text writes, as 1 or 0 a boolean; None where it writes none."""
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    digits = re.fullmatch(r"\s*([+-]?\d{1,18})(\.0*)?\s*", text, re.ASCII)
    return None if digits is None else int(digits[1])


def recode(codes: Array, own: Array, classes: Array) -> Array:
    """Codes under some classes as codes under others, which hold all of them; in the narrowest integers."""
    return smallest_codes(_through(np.searchsorted(classes, own).astype(np.int32), codes), len(classes))


def merge_classes(parts: Iterable[Array]) -> Array:
    """The classes of labels that were encoded part by part."""
    found = [part for part in parts if len(part)]
    if not found:
        return np.empty(0, np.int64)
    if len({_sort_of(part) for part in found}) > 1:
        raise InputError("y mixes text with numbers; give labels of one type")
    classes = np.unique(np.concatenate(found))
    _refuse_measurements(classes)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"y has more than {MOST_CLASSES:,} distinct labels, such as {classes[0]} and {classes[1]}; "
            "identifiers or measurements are not classes"
        )
    return classes


def sample_weights(weights: Any, n_rows: int | None = None) -> Array:
    """Weights as int64 where all are whole numbers, so that they count exactly, else as float64.

    A single number is the weight of each row, as scikit-learn has it.
    """
    if n_rows is not None and isinstance(weights, Real):
        weights = np.full(n_rows, weights)
    values = np.asarray(as_column(weights, "sample_weight"))
    if values.dtype.kind == "O":
        values = _as_numbers(values)
    if n_rows is not None and len(values) != n_rows:
        raise InputError(
            f"X has {n_rows} rows but sample_weight has {len(values)} entries; give one weight for each row of X"
        )
    if values.dtype.kind not in "biuf":
        raise InputError(f"sample_weight holds {values.dtype} values; give numbers of zero or more")
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"sample_weight {values[row]} in row {row}; give finite weights of zero or more")
    whole = values.dtype.kind in "iu" or bool(np.all(values == np.floor(values)))
    if whole and (not values.size or float(values.max()) < 2.0**62):
        return values.astype(np.int64)
    return values.astype(np.float64)


def smallest_codes(codes: Array, n_classes: int) -> Array:
    """The codes in the narrowest signed integers, for when they travel."""
    return codes.astype(np.int8 if n_classes <= 127 else np.int16 if n_classes <= 32_767 else np.int32)


def _is_pandas(values: Any) -> bool:
    return library_of(values) == "pandas"


def as_column(values: Any, name: str) -> Any:
    """Labels or weights as an array, or the pandas object itself, with one axis."""
    values = unwrapped(values, name)
    if not _is_pandas(values):
        if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
            values = _from_list(values)
        elif library_of(values) in ("polars", "pyarrow") and is_column(values) and has_nulls(values):
            values = _from_list(python_values(values))  # numpy alone would make floats of whole numbers
        values = np.asarray(values)
    if values.ndim == 0:
        raise InputError(f"{name} is a {_name_of(values)}; give a list or an array with one value for each row")
    if values.ndim != 1:
        raise InputError(f"{name} has {values.ndim} dimensions; give one value for each row, such as {name}.ravel()")
    return values


def _name_of(scalar: Array) -> str:
    value = scalar.item()
    return type(value).__name__ if scalar.dtype.kind == "O" else f"single value, {value!r}"


def _as_numbers(weights: Array) -> Array:
    """Weights that come as Python's objects; what is no number stays, to be refused."""
    if any(isinstance(weight, (str, bytes)) for weight in weights):
        return weights
    try:
        return weights.astype(np.float64)
    except (TypeError, ValueError):
        return weights


def _from_list(values: Sequence[Any]) -> Array:
    """Lists keep their types: numpy alone would turn [1, "a", None] into text."""
    if any(value is None or isinstance(value, str) for value in values):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    return np.asarray(values)


def _encode_integers(values: Array) -> tuple[Array, Array]:
    """Count in a table over the range of the labels where that is short, else sort."""
    if not len(values):
        return values.copy(), np.empty(0, np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        classes, codes = np.unique(values, return_inverse=True)
        return classes, codes.astype(np.int32)
    offsets = (values - values.dtype.type(low)).astype(np.intp)
    found = np.flatnonzero(np.bincount(offsets))
    table = np.zeros(high - low + 1, np.int32)
    table[found] = np.arange(len(found), dtype=np.int32)
    return found.astype(values.dtype) + values.dtype.type(low), table[offsets]


def _encode_text(values: Array) -> tuple[Array, Array]:
    """Compare all rows with one label after another: for a few classes by far the fastest way."""
    codes = np.full(len(values), UNLABELLED, np.int32)
    found: list[Any] = []
    while len(found) < FEW_CLASSES:
        rest = int(np.argmax(codes == UNLABELLED)) if len(codes) else 0
        if not len(codes) or codes[rest] != UNLABELLED:
            return _sorted(found, codes)
        codes[values == values[rest]] = len(found)
        found.append(values[rest].item())
    return _sorted(*_factorize(values.tolist()))


def _encode_floats(values: Array) -> tuple[Array, Array]:
    missing = np.isnan(values)
    present = values[~missing] if missing.any() else values
    _refuse_continuous(present)
    if present.size and float(np.abs(present).max()) >= 2.0**53:
        classes, found = np.unique(present, return_inverse=True)
    else:
        classes, found = _encode_integers(present.astype(np.int64))
    codes = np.full(len(values), UNLABELLED, np.int32)
    codes[~missing] = found
    return classes.astype(values.dtype), codes


def _refuse_continuous(values: Array) -> None:
    odd = ~np.isfinite(values) | (values != np.floor(values))
    if odd.any():
        kind = "infinite" if np.isinf(values[odd][0]) else "continuous"
        raise InputError(
            f"Unknown label type: {kind} values such as {values[odd][0]} in y; "
            "labels are classes: give strings, integers or booleans, or cut the values into ranges first"
        )


def _refuse_measurements(classes: Array) -> None:
    """Refuse texts that are continuous numbers, as files of text have them: too many, or of too many digits."""
    if classes.dtype.kind != "U":
        return
    try:
        values = classes.astype(np.float64)
    except ValueError:
        return
    fractions = np.isfinite(values) & (values != np.floor(values))
    if fractions.any() and (len(values) > MOST_FRACTIONS or np.any(np.round(values, 2) != values)):
        _refuse_continuous(values[fractions])


def warn_of_classes(classes: Array, n_rows: int) -> None:
    """Warn of a single class, and of so many that they may be identifiers or measurements."""
    if len(classes) == 1:
        warn(
            f"all labels are {classes.tolist()}: a model of one class predicts nothing else, and no feature tells "
            "anything; give documents of at least two classes",
            DataWarning,
        )
    elif len(classes) > MANY_CLASSES or (len(classes) > MOST_FRACTIONS and 0 <= n_rows < 10 * len(classes)):
        warn(
            f"there are {len(classes):,} classes, such as {str(classes[0])[:40]} and {str(classes[1])[:40]}, among "
            f"{'the' if n_rows < 0 else format(n_rows, ',')} documents; if the labels are identifiers or measurements, "
            "name another column, or cut the values into ranges first",
            DataWarning,
        )


def _factorize(values: list[Any]) -> tuple[list[Any], Array]:
    """Distinct labels in order of appearance, and the position of each row's label."""
    try:
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(number.__getitem__, values), np.int32, len(values))
    except TypeError:
        raise InputError("Unknown label type: y holds lists or other compound values; give one label per row") from None
    table = np.full(len(number), UNLABELLED, np.int32)
    present = [v for v in number if not _missing(v)]
    for position, value in enumerate(present):
        table[number[value]] = position
    return present, table[codes] if len(codes) else codes


def _missing(value: Any) -> bool:
    if value is None:
        return True
    different = value != value  # NaN and NaT differ from themselves; pandas.NA does not say
    return different is not False and (_is_pandas(value) or bool(different))


def _factorize_pandas(values: Any) -> tuple[list[Any], Array]:
    codes, distinct = values.factorize(use_na_sentinel=True)
    return list(distinct), np.asarray(codes, np.int32)


def _sorted(values: list[Any], codes: Array) -> tuple[Array, Array]:
    """Number the classes in sorted order."""
    classes = _as_classes(values)
    order = np.argsort(classes, kind="stable")
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return classes[order], _through(position, codes)


def _through(position: Array, codes: Array) -> Array:
    """``position[codes]``, where unlabelled rows stay so."""
    table = np.append(position, np.int32(UNLABELLED))  # the code -1 finds the last entry
    return table[codes]


def _as_classes(values: list[Any]) -> Array:
    """Distinct labels as an array of one plain type."""
    if not values:
        return np.empty(0, np.int64)
    if all(isinstance(v, str) for v in values):
        if cut := [v for v in values if v.endswith("\0")]:  # numpy would drop it, and could make two labels one
            raise InputError(f"y holds the label {cut[0]!r}; no label may end in a NUL character, strip it")
        _refuse_measurements(texts := np.array(values, np.str_))
        return texts
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return np.array(values, bool)
    if all(isinstance(v, bytes) for v in values):
        return np.array(values, np.bytes_)
    if any(not isinstance(v, (int, float, np.number, bool, np.bool_)) for v in values):
        kinds = " and ".join(sorted({type(v).__name__ for v in values}))
        raise InputError(f"Unknown label type: y holds {kinds}; give labels of one type: strings, integers or booleans")
    classes = np.array(values)
    if classes.dtype.kind == "O":  # whole numbers beyond what numpy holds
        raise InputError(f"the label {max(values, key=abs)} does not fit 64 bits; give smaller numbers, or strings")
    if classes.dtype.kind == "f":
        _refuse_continuous(classes)
    return classes


def _sort_of(classes: Array) -> str:
    return "number" if classes.dtype.kind in "biuf" else classes.dtype.kind
