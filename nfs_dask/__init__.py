"""Sparse classifiers with exactly solved feature selection, on data that need not fit on one machine.

Importing this package is cheap: a public name loads the module that defines it when it is first used.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from nfs_dask._version import __version__
from nfs_dask.redaction import HidingSecrets

if TYPE_CHECKING:
    from nfs_dask import plots as plots
    from nfs_dask.dataset import Dataset, open_dataset, plan
    from nfs_dask.engine.distributed import DaskEngine
    from nfs_dask.engine.serial import SerialEngine
    from nfs_dask.errors import (
        ClusterError,
        DataWarning,
        InputError,
        NfsDaskError,
        NfsDaskWarning,
        PlanError,
        ResumeError,
        StoreError,
    )
    from nfs_dask.estimators.evaluating import evaluate
    from nfs_dask.estimators.loading import load_model
    from nfs_dask.estimators.scikit_learn import (
        ErrorRateSelector,
        HybridNB,
        SparseBernoulliNB,
        SparseCentroid,
        SparseMultinomialNB,
    )
    from nfs_dask.estimators.vectorizer import TextVectorizer
    from nfs_dask.ingestion.ingest import ingest
    from nfs_dask.methods.predicted_error import predict_error
    from nfs_dask.prediction.coverage import accuracy_coverage
    from nfs_dask.reports.make_report import report
    from nfs_dask.selection.cross_validate import cross_validate
    from nfs_dask.selection.make_path import path

logging.getLogger("nfs_dask").addFilter(HidingSecrets())

_HOME = {
    "ClusterError": "nfs_dask.errors",
    "DaskEngine": "nfs_dask.engine.distributed",
    "DataWarning": "nfs_dask.errors",
    "Dataset": "nfs_dask.dataset",
    "ErrorRateSelector": "nfs_dask.estimators.scikit_learn",
    "HybridNB": "nfs_dask.estimators.scikit_learn",
    "InputError": "nfs_dask.errors",
    "NfsDaskError": "nfs_dask.errors",
    "NfsDaskWarning": "nfs_dask.errors",
    "PlanError": "nfs_dask.errors",
    "ResumeError": "nfs_dask.errors",
    "SerialEngine": "nfs_dask.engine.serial",
    "SparseBernoulliNB": "nfs_dask.estimators.scikit_learn",
    "SparseCentroid": "nfs_dask.estimators.scikit_learn",
    "SparseMultinomialNB": "nfs_dask.estimators.scikit_learn",
    "StoreError": "nfs_dask.errors",
    "TextVectorizer": "nfs_dask.estimators.vectorizer",
    "accuracy_coverage": "nfs_dask.prediction.coverage",
    "cross_validate": "nfs_dask.selection.cross_validate",
    "evaluate": "nfs_dask.estimators.evaluating",
    "ingest": "nfs_dask.ingestion.ingest",
    "load_model": "nfs_dask.estimators.loading",
    "open_dataset": "nfs_dask.dataset",
    "path": "nfs_dask.selection.make_path",
    "plan": "nfs_dask.dataset",
    "predict_error": "nfs_dask.methods.predicted_error",
    "report": "nfs_dask.reports.make_report",
}

_PARTS = frozenset({"plots"})  # public names that are kept together, in a module

__all__ = [
    "ClusterError",
    "DaskEngine",
    "DataWarning",
    "Dataset",
    "ErrorRateSelector",
    "HybridNB",
    "InputError",
    "NfsDaskError",
    "NfsDaskWarning",
    "PlanError",
    "ResumeError",
    "SerialEngine",
    "SparseBernoulliNB",
    "SparseCentroid",
    "SparseMultinomialNB",
    "StoreError",
    "TextVectorizer",
    "__version__",
    "accuracy_coverage",
    "cross_validate",
    "evaluate",
    "ingest",
    "load_model",
    "open_dataset",
    "path",
    "plan",
    "predict_error",
    "report",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"nfs_dask.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'nfs_dask' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS})
