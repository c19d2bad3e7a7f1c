"""Features that could take the place of a chosen one, and nothing would be lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import iterated
from nfs_dask.models.model import Model
from nfs_dask.solvers.solution import RELATIVE


def equal_gains(scores: Array, model: Model, always: Any) -> Array:
    """The others that gain as much, up to rounding, as the least of the chosen; where gains add up.

    Parameters
    ----------
    scores : (m,) gain of each feature
    model
    always
        Features that are chosen in any case, as they were given: they are exchanged for none.
    """
    free = _free(model, always)
    if not len(free):
        return free
    found = np.isclose(scores, scores[free].min(), rtol=RELATIVE, atol=0.0)
    return _others(found, model)


def equal_columns(totals: Array, model: Model, always: Any) -> Array:
    """The others whose counts are those of a chosen feature, in every class: whatever is made of these is the same.

    Parameters
    ----------
    totals : (C, m) of each class
    model, always
        As of `equal_gains`.
    """
    free = _free(model, always)
    columns = np.ascontiguousarray(totals.T) + 0  # of minus zero, zero
    keys = columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
    return _others(np.isin(keys, keys[free]), model)


def _free(model: Model, always: Any) -> Array:
    """The chosen features that need not have been, ascending."""
    wanted = set(() if always is None else iterated(always))
    names = model.feature_names if any(isinstance(one, str) for one in wanted) else [""] * len(model.support)
    free = [c not in wanted and name not in wanted for c, name in zip(model.support.tolist(), names, strict=True)]
    return np.asarray(model.support[np.array(free, bool)])


def _others(found: Array, model: Model) -> Array:
    """Those of some features (m,) bool that were not chosen, ascending."""
    found[model.support] = False
    return np.flatnonzero(found)
