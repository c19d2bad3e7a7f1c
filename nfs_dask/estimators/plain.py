"""What a fitted estimator holds as plain values: numbers, texts, arrays, and lists and dicts of these.

Pickles take anything. Formats that load nothing they do not know, such as skops, take these.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nfs_dask.errors import StoreError
from nfs_dask.estimators.naming import GivenNames, StoredNames
from nfs_dask.methods.centers import CenterSettings
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.prediction.document_frequencies import ColumnTotals
from nfs_dask.prediction.vectorizing import KnownColumns, Splitter
from nfs_dask.solvers.medians.column_medians import Medians
from nfs_dask.solvers.predicted_error.estimate import ErrorEstimate
from nfs_dask.statistics.statistic import State
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings

KIND = "nfs-dask value"

_VALUES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        CenterSettings,
        CentersModel,
        ColumnTotals,
        KnownColumns,
        ErrorEstimate,
        Evidence,
        GivenNames,
        HybridModel,
        Medians,
        NaiveBayesModel,
        Splitter,
        State,
        StoredNames,
        Strings,
        TextFeatures,
        TextSettings,
    )
}


def plain(value: Any) -> Any:
    """A value of ours as a dict of its fields, with its name; anything else as it is. Nothing is copied."""
    if _VALUES.get(type(value).__name__) is not type(value):
        return value
    return {KIND: type(value).__name__} | {
        field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
    }


def restored(value: Any) -> Any:
    """The inverse of `plain`."""
    if not isinstance(value, dict) or KIND not in value:
        return value
    kind = _VALUES.get(value[KIND])
    if kind is None:
        raise StoreError(f"the estimator holds a {value[KIND]!r}, unknown to this version; upgrade, or fit again")
    return kind(**{name: restored(part) for name, part in value.items() if name != KIND})
