"""Pictures of what fits, paths and evaluations have found, in the way of scikit-learn's displays.

Importing this is cheap: a display is loaded when it is first used, and matplotlib when something is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nfs_dask.plots.accuracy_display import AccuracyDisplay
    from nfs_dask.plots.centers_display import CentersDisplay
    from nfs_dask.plots.confusion_display import ConfusionDisplay
    from nfs_dask.plots.coverage_display import CoverageDisplay
    from nfs_dask.plots.error_display import ErrorDisplay
    from nfs_dask.plots.features_display import FeaturesDisplay
    from nfs_dask.plots.path_display import PathDisplay
    from nfs_dask.plots.reliability_display import ReliabilityDisplay

_HOME = {
    "AccuracyDisplay": "nfs_dask.plots.accuracy_display",
    "CentersDisplay": "nfs_dask.plots.centers_display",
    "ConfusionDisplay": "nfs_dask.plots.confusion_display",
    "CoverageDisplay": "nfs_dask.plots.coverage_display",
    "ErrorDisplay": "nfs_dask.plots.error_display",
    "FeaturesDisplay": "nfs_dask.plots.features_display",
    "PathDisplay": "nfs_dask.plots.path_display",
    "ReliabilityDisplay": "nfs_dask.plots.reliability_display",
}

__all__ = [
    "AccuracyDisplay",
    "CentersDisplay",
    "ConfusionDisplay",
    "CoverageDisplay",
    "ErrorDisplay",
    "FeaturesDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nfs_dask.plots' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
