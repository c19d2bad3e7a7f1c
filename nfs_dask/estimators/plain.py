"""What a fitted estimator holds as plain values: numbers, texts, arrays, and lists and dicts of these.

Pickles take anything. Formats that load nothing they do not know, such as skops, take these.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from nfs_dask.errors import StoreError

KIND = "nfs-dask value"

_HOMES = {  # where each kind of value is, which is loaded when one is restored
    "CenterSettings": "nfs_dask.methods.centers",
    "CentersModel": "nfs_dask.models.centers",
    "ColumnTotals": "nfs_dask.prediction.document_frequencies",
    "ErrorEstimate": "nfs_dask.solvers.predicted_error.estimate",
    "Evidence": "nfs_dask.models.model",
    "GivenNames": "nfs_dask.estimators.naming",
    "HybridModel": "nfs_dask.models.hybrid",
    "KnownColumns": "nfs_dask.prediction.vectorizing",
    "Medians": "nfs_dask.solvers.medians.column_medians",
    "NaiveBayesModel": "nfs_dask.models.naive_bayes",
    "Splitter": "nfs_dask.prediction.vectorizing",
    "State": "nfs_dask.statistics.statistic",
    "StoredNames": "nfs_dask.estimators.naming",
    "Strings": "nfs_dask.text.strings",
    "TextFeatures": "nfs_dask.text.features",
    "TextSettings": "nfs_dask.text.settings",
}


def plain(value: Any) -> Any:
    """A value of ours as a dict of its fields, with its name; anything else as it is. Nothing is copied."""
    if _HOMES.get(type(value).__name__) != type(value).__module__:
        return value
    return {KIND: type(value).__name__} | {
        field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
    }


def restored(value: Any) -> Any:
    """The inverse of `plain`."""
    if not isinstance(value, dict) or KIND not in value:
        return value
    home = _HOMES.get(value[KIND])
    if home is None:
        raise StoreError(f"the estimator holds a {value[KIND]!r}, unknown to this version; upgrade, or fit again")
    kind = getattr(importlib.import_module(home), value[KIND])
    return kind(**{name: restored(part) for name, part in value.items() if name != KIND})
