"""Selected features, as scikit-learn's selectors have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import is_collection, unwrapped
from nfs_dask.errors import InputError
from nfs_dask.estimators.inputs import check_fitted, rows_of
from nfs_dask.models.model import Model
from nfs_dask.prediction.column_selection import lazy_frame, restore, select
from nfs_dask.text.column_names import with_names

_REMEDY = "set the output back with set_output(transform='default')"


class SelectingMixin:
    """Selection by the support of a `Model`."""

    model_: Model
    n_features_in_: int
    engine: Any
    fit: Any  # of the estimator

    def get_support(self, indices: bool = False) -> Array:
        """The selected features: a mask (n_features_in_,), or with ``indices`` their indices (k,), ascending."""
        check_fitted(self)
        support = self.model_.support
        if indices:
            return support.copy()
        mask = np.zeros(self.n_features_in_, bool)
        mask[support] = True
        return mask

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the selected features, (k,).

        Parameters
        ----------
        input_features : (n_features_in_,) names, optional
            For data without names of their own; else they have to be the same.
        """
        check_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        if input_features is None:
            return np.array(self.model_.feature_names, object)
        given = np.asarray(input_features, object)
        if known is not None and not np.array_equal(given, known):
            raise InputError("input_features is not equal to feature_names_in_; leave it out")
        if len(given) != self.n_features_in_:
            raise InputError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(given)}; give one name for each"
            )
        return given[self.model_.support]

    def transform(self, X: Any) -> Any:
        """The selected columns of X.

        Sparse input gives sparse output of the same library; numpy arrays and data frames give numpy arrays; dask
        arrays and data frames stay lazy, with chunks as they are; a `Dataset` gives a scipy CSR array, and so do texts,
        of a bag or dask Series a lazy array of such chunks. ``set_output(transform="pandas")`` makes frames of all that
        is dense, of dask arrays lazy ones.

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts

        Returns
        -------
        (n, k) matrix
        """
        check_fitted(self)
        return _contained(self, self._transformed(X), X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit` and `transform` in one.

        Parameters
        ----------
        X, y, **fit_params
            As for `fit`.
        """
        return self.fit(X, y, **fit_params).transform(X)

    def _transformed(self, X: Any) -> Any:
        """The selected columns, in a container that is like X."""
        return with_names(select(rows_of(self, X), self.model_.support, self.engine), self.model_.names)

    def inverse_transform(self, X: Any) -> Any:
        """Selected columns back in their places, (n, n_features_in_); the others are empty. The result is sparse.

        Parameters
        ----------
        X : (n, k) matrix or dask array
        """
        check_fitted(self)
        X = unwrapped(X)
        Z = X if hasattr(X, "shape") else np.asarray(X)
        return restore(Z, self.model_.support, self.model_.n_features)

    def top_features(self, n: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """For each class the features that speak for it most.

        Parameters
        ----------
        n
            At most so many for each class.

        Returns
        -------
        dict
            Label to (name, weight) pairs, largest weight first: what a unit of the feature adds to the log likelihood
            of the class, less what it adds to that of other classes on average over their documents; of centers how far
            that of the class is above the others on that average, in standard deviations where the metric has them,
            else in the units of the feature. Only weights above 0.
        """
        check_fitted(self)
        known = getattr(self, "_names", None)
        return self.model_.top_features(n, None if known is None else known.names)


def _contained(estimator: Any, selected: Any, X: Any) -> Any:
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
