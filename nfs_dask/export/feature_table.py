"""The selected features as a table, and tables as files: CSV for people and spreadsheets, Parquet for programs."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel

# What spreadsheets take a cell for a formula by, also in the wide forms of East Asian keyboards
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
AT_A_TIME = 1 << 12  # rows


def feature_columns(
    model: Model, names: Sequence[str], gains: Array | None = None, counted: tuple[str, Array] | None = None
) -> dict[str, list[Any] | Array]:
    """A value for each selected feature, in the order of their columns, by the names of what they are.

    Parameters
    ----------
    model
    names : (k,)
    gains : (k,), optional
    counted : what was, and how often: (C, k), optional
    """
    columns: dict[str, list[Any] | Array] = {"feature": list(names), "column": model.support.copy()}
    if gains is not None:
        columns |= {"gain": np.asarray(gains, np.float64), "rank": ranks(gains)}
    columns |= _by_class(model, "weight", model.margins())
    if isinstance(model, NaiveBayesModel):
        columns |= _by_class(model, "log_probability", model.present)
    elif isinstance(model, HybridModel):
        columns |= _by_class(model, "log_probability", log_probabilities(model))
    elif isinstance(model, CentersModel):
        columns |= _by_class(model, "center", np.where(model.class_count[:, None] > 0, model.centers, np.nan))
        columns["common_center"] = model.pooled.copy()
        if model.variances is not None:
            columns["variance"] = model.variances.copy()
    if counted is not None:
        columns |= _by_class(model, *counted)
    return columns


def data_frame(columns: Mapping[str, Any]) -> Any:
    """As a DataFrame of pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError("to_frame makes a DataFrame of pandas, which is not installed; pip install pandas") from None
    # Names are texts of any kind: pandas has several types for them, and objects are all of them
    types = {name: object if isinstance(values, list) else values.dtype for name, values in columns.items()}
    return pd.DataFrame({name: pd.Series(values, dtype=types[name]) for name, values in columns.items()})


def log_probabilities(model: HybridModel) -> Array:
    """Log P(w|c) of each selected column, (C, k): of the words of one region after those of the other."""
    logs, k = model.log_probabilities, len(model.support)
    by_region = logs[:, None, :] if logs.ndim == 2 else logs
    shape = (model.n_classes, model.n_regions, k // model.n_regions)
    return np.broadcast_to(by_region, shape).reshape(model.n_classes, k)


def ranks(gains: Array) -> Array:
    """The place of each feature when they are sorted by their gains, from 1; of equal ones the lower column first."""
    out = np.empty(len(gains), np.int64)
    out[np.argsort(-np.asarray(gains), kind="stable")] = np.arange(1, len(gains) + 1)
    return out


def _by_class(model: Model, what: str, values: Array) -> dict[str, Array]:
    return {f"{what}_{label}": row.copy() for label, row in zip(model.classes.tolist(), values, strict=True)}


# Files


def harmless(text: str) -> str:
    r"""The text as a cell that no spreadsheet takes for a formula: with an apostrophe before it, as OWASP advises.

    >>> harmless("=1+1"), harmless("tea"), harmless("-tea"), harmless("a=b"), harmless("-1")
    ("'=1+1", 'tea', "'-tea", 'a=b', '-1')
    """
    return f"'{text}" if text.startswith(_FORMULAS) and not _NUMBER.fullmatch(text) else text


def write_csv(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    """UTF-8 with the mark that makes spreadsheets read it as such, and all texts in quotes.

    Numbers have all their digits, and no quotes.
    """
    file.write(codecs.BOM_UTF8)
    file.write(_lines([list(map(harmless, columns))]))
    values = list(columns.values())
    for start in range(0, len(values[0]), AT_A_TIME):
        some = [_cells(column[start : start + AT_A_TIME]) for column in values]
        file.write(_lines(zip(*some, strict=True)))


def write_parquet(file: IO[bytes], tables: Iterable[Mapping[str, Any]]) -> None:
    """Write tables of the same columns one below the other, the values as they are."""
    import pyarrow as pa
    from pyarrow import parquet

    with ExitStack() as stack:
        writer = None
        for columns in tables:
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            writer = writer or stack.enter_context(parquet.ParquetWriter(file, table.schema))
            writer.write_table(table)


def _cells(values: Any) -> list[Any]:
    plain = values.tolist() if hasattr(values, "tolist") else values
    return [harmless(value) if isinstance(value, str) else value for value in plain]


def _lines(rows: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()
