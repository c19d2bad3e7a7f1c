"""Every type that pandas gives to strings, whatever it is called there."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pandas as pd
import pyarrow as pa


def _type(dtype):
    return lambda texts: pd.Series(texts, dtype=dtype)


def _chunks(texts):
    return pd.concat([pd.Series([text], dtype="string[pyarrow]") for text in texts])


# Each makes a Series of a list, in which None is missing.
STRING_TYPES = {
    "inferred": pd.Series,
    "object": _type(object),
    "str": _type("str"),
    "python": _type("string[python]"),
    "pyarrow": _type("string[pyarrow]"),
    "chunks": _chunks,
    "arrow": _type(pd.ArrowDtype(pa.string())),
    "large arrow": _type(pd.ArrowDtype(pa.large_string())),
    "view arrow": _type(pd.ArrowDtype(pa.string_view())),
    "dictionary": _type(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "categories": _type("category"),
    "categories of pyarrow": lambda texts: pd.Series(texts, dtype="string[pyarrow]").astype("category"),
    "categories of python": lambda texts: pd.Series(texts, dtype="string[python]").astype("category"),
}
if "na_value" in signature(pd.StringDtype).parameters:  # since pandas 2.3
    for storage in ("python", "pyarrow"):
        STRING_TYPES[f"{storage}, nan"] = _type(pd.StringDtype(storage, na_value=np.nan))
