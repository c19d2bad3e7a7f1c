"""Pictures of what fits, paths and evaluations have found, in the way of scikit-learn's displays.

Importing this is cheap: a display is loaded when it is first used, and matplotlib when something is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nfs_dask.plots.k_displays import AccuracyDisplay, ErrorDisplay, PathDisplay
    from nfs_dask.plots.model_displays import CentersDisplay, FeaturesDisplay
    from nfs_dask.plots.prediction_displays import ConfusionDisplay, CoverageDisplay, ReliabilityDisplay

_HOME = {
    "AccuracyDisplay": "k_displays",
    "CentersDisplay": "model_displays",
    "ConfusionDisplay": "prediction_displays",
    "CoverageDisplay": "prediction_displays",
    "ErrorDisplay": "k_displays",
    "FeaturesDisplay": "model_displays",
    "PathDisplay": "k_displays",
    "ReliabilityDisplay": "prediction_displays",
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
    value = getattr(importlib.import_module(f"nfs_dask.plots.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
