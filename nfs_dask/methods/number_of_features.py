"""How many features to keep: what users may write for k, and what it means for m features."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import DataWarning, InputError, warn


def numbers_to_keep(ks: Any, n_features: int) -> Array:
    """The numbers of features that a list of k asks for, ascending int64, each once.

    >>> numbers_to_keep([10, "all", 0.1, 20], 200).tolist()
    [10, 20, 200]
    """
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise InputError(f'ks={ks!r} is not a list; write several k, such as [10, 0.01, "all"]')
    found = np.unique([number_to_keep(k, n_features) for k in ks]).astype(np.int64)
    if not len(found):
        raise InputError("ks is empty; name at least one k")
    return found


def number_to_keep(k: Any, n_features: int) -> int:
    """The number of features that ``k`` asks for.

    A whole number is itself; a fraction in (0, 1) keeps at least one; "all" keeps all.

    >>> number_to_keep(10, 200), number_to_keep(0.001, 200), number_to_keep("all", 200)
    (10, 1, 200)
    """
    if isinstance(k, str):
        if k != "all":
            raise InputError(f'k={k!r} is not understood; give a number of features, a fraction such as 0.01, or "all"')
        return n_features
    if isinstance(k, bool) or not isinstance(k, numbers.Real) or not math.isfinite(k):
        raise InputError(f'k={k!r} is not understood; give a number of features, a fraction such as 0.01, or "all"')
    if isinstance(k, numbers.Integral):
        count = int(k)
        if count < 1:
            raise InputError(f'k={k} keeps no feature; give 1 or more, a fraction such as 0.01, or "all"')
        if count > n_features:
            warn(f"k={k} is more than the {n_features} features there are; all are kept", DataWarning)
        return min(count, n_features)
    share = float(k)
    if not 0 < share < 1:
        hint = ' to keep all features, write k="all"' if share == 1 else f" for {k:g} features, write k={round(share)}"
        raise InputError(f"k={k} is not a fraction between 0 and 1;{hint}")
    return max(1, int(share * n_features))
