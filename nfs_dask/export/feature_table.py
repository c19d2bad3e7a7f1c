"""The selected features as a table: what is known of each, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel


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
    return pd.DataFrame({name: pd.Series(values, dtype=_dtype(values)) for name, values in columns.items()})


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


def _dtype(values: Any) -> Any:
    """Names are texts of any kind: pandas has several types for them, and objects are all of them."""
    return object if isinstance(values, list) else values.dtype
