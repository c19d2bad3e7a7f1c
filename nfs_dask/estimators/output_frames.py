"""Selected columns in the container that `set_output`, or scikit-learn's configuration, asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.containers import is_collection
from nfs_dask.errors import InputError
from nfs_dask.prediction.column_selection import lazy_frame


def contained(estimator: Any, selected: Any, X: Any) -> Any:
    """What a transform of X found, as a frame where one is wanted.

    scikit-learn wraps the methods of its own transformers so; it would compute whatever is lazy.
    """
    from sklearn.utils._set_output import _get_output_config, _wrap_data_with_container

    wanted = _get_output_config("transform", estimator)["dense"]
    if wanted == "default":
        return selected
    if is_collection(selected):
        if wanted != "pandas":
            raise InputError(f"X is a Dask collection, and Dask has no {wanted} frames; {_REMEDY}, or to 'pandas'")
        return lazy_frame(selected, estimator.get_feature_names_out())
    if not isinstance(selected, np.ndarray):
        raise InputError(
            f"the selected columns are sparse, a {type(selected).__name__}, and no {wanted} frame holds them; give "
            f"dense rows, or {_REMEDY}"
        )
    return _wrap_data_with_container("transform", selected, X, estimator)


_REMEDY = "set the output back with set_output(transform='default')"
