"""What a fitted model says of documents, as scikit-learn's methods."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.containers import is_collection, unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.errors import InputError
from nfs_dask.estimators.available import available_if
from nfs_dask.estimators.inputs import check_fitted, one_column, rows_of
from nfs_dask.graphs import computed, reduced
from nfs_dask.models.model import Model
from nfs_dask.prediction.counted_rows import as_scipy
from nfs_dask.prediction.reader import Reader, TextSource
from nfs_dask.sources.labels import encode, match_labels, sample_weights
from nfs_dask.sources.open_source import open_source

if TYPE_CHECKING:
    from nfs_dask.prediction.explanation import Explanation
    from nfs_dask.prediction.model_rows import What

MOST_DENSE = 256 << 20  # bytes of weights that are an ndarray without being asked for as one


def _found_linear(estimator: Any) -> bool:
    """Whether a fit found a linear rule. Before it scikit-learn's checks would try negative values on any that may."""
    return hasattr(estimator, "model_") and estimator.model_.is_linear


class PredictingMixin:
    """Prediction over a `Model`.

    All methods take a matrix in memory (of numpy, scipy, sparse, pandas, polars, pyarrow or xarray), a dask array or
    DataFrame, or a `Dataset`. Of a Dask DataFrame or Series the result is a lazy Dask Series, or a DataFrame with a
    column for each class, with the same index and divisions; of another Dask collection a lazy dask array; else it is a
    numpy array, for a `Dataset` made block by block by the engine.

    A model that was fitted to texts which `nfs_dask.ingest` read takes raw text as well: a list, tuple, numpy array or
    Series of strings, a dask bag or Series. Where documents have several regions, a DataFrame with these columns, or
    tuples or dicts, one for each document; also in a bag. Empty texts are rows like others.
    """

    model_: Model
    reader_: Reader | None  # of raw text; None for models of other data
    engine: Any
    _sparse: bool | None = None  # whether `coef_` is to be sparse; None: if it is large

    def predict(self, X: Any) -> Any:
        """The most likely class of each row.

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts

        Returns
        -------
        (n,) labels
            The first of ``classes_`` where several are as likely.
        """
        return self._score(X, "predict")

    def predict_proba(self, X: Any) -> Any:
        """The posterior probability of each class, (n, C), in the order of ``classes_``.

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts
        """
        return self._score(X, "predict_proba")

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of the posterior probability of each class, (n, C).

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts
        """
        return self._score(X, "predict_log_proba")

    def decision_function(self, X: Any) -> Any:
        """Two classes: above 0 for ``classes_[1]``, (n,). More: a score of each class, (n, C), larger is better.

        Log odds and joint log likelihoods of naive Bayes; of centers minus the distances, up to a constant of the row.
        """
        return self._score(X, "decision_function")

    def explain(self, X: Any, documents: Any = None) -> Explanation:
        """Why rows are taken for what they are taken for: what each selected feature contributes to the decision.

        ``base`` and all contributions of a row add up to its `decision_function`. Of naive Bayes and of the hybrid the
        base is what is said of a document without any selected feature, and a contribution is that of the presence of a
        feature. Of centers a contribution is what the value of a selected feature, be it 0, changes beside the mean of
        the centers of the classes; of two classes that is midway between them, and the base is 0. Shown in a notebook
        or printed, texts have the words marked that speak for a class or against it.

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts
        documents : numbers of rows, optional
            Those to look at, from 0 on. None: all, if they are at most 100,000.

        Returns
        -------
        Explanation
            With `base`, `predicted`, `top`, `to_frame` and `to_html`.
        """
        from nfs_dask.prediction.explaining import explain

        rows = rows_of(self, X)
        known = getattr(self, "_names", None)
        if not isinstance(rows, TextSource):
            rows = rows.source if isinstance(rows, Dataset) else open_source(rows)
        names = None if known is None else known.names
        return explain(rows, self.model_, documents, names=names, engine=self.engine)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of rows whose class is predicted rightly.

        Parameters
        ----------
        X : (n, n_features_in_) matrix, dask array or DataFrame, Dataset, or texts
        y : (n,) labels, optional
            A Dataset brings its own; `nfs_dask.evaluate` says more about it, and how texts match numbers.
        sample_weight : (n,) weights, optional
        """
        from nfs_dask.prediction.evaluation import evaluate

        if isinstance(X, Dataset) and y is None and sample_weight is None:
            rows_of(self, X)  # says what is wrong with rows of other features
            return evaluate(self.model_, X, self.engine).accuracy
        if y is None:
            raise InputError("score needs the labels of these rows as y=, one for each")
        columns = [self.predict(X), unwrapped(y, "y")]
        columns += [] if sample_weight is None else [unwrapped(sample_weight, "sample_weight")]
        if all(map(is_collection, columns)):
            right, total = reduced("score", partial(_right, self.model_.classes), sum, columns)
        else:
            right, total = _right(self.model_.classes, *map(computed, columns))
        return float(right / total)

    def _score(self, X: Any, what: What) -> Array | Any:
        from nfs_dask.prediction.scoring import score

        return score(rows_of(self, X), self.model_, what, self.engine)

    @property
    def coef_(self) -> Any:
        """Weights of the linear rule, (1 or C, n_features_in_); above 0 speaks for the class.

        An ndarray up to 256 MiB, beyond that a CSR array; `sparsify` and `densify` ask for one of them. It is made each
        time it is asked for, and never stored.

        Of more than two classes less their average, in which a class weighs as many as its documents are (of distances
        to centers, the pooled center takes its place): scores differ between classes as ``X @ coef_.T + intercept_``
        does, and what is the same for all of them is left out.
        """
        weights = self._linear().coefficients()[0]
        inputs, shape = self.model_.inputs, (len(weights), self.model_.n_features)
        if 8 * shape[0] * shape[1] > MOST_DENSE if self._sparse is None else self._sparse:
            columns, indptr = np.tile(inputs, shape[0]), len(inputs) * np.arange(shape[0] + 1)
            return as_scipy((indptr, columns, weights.ravel()), shape[1])
        dense = np.zeros(shape)
        dense[:, inputs] = weights
        return dense

    @available_if(_found_linear)
    def sparsify(self) -> Self:
        """Make ``coef_`` a CSR array until the next fit."""
        self._sparse = True
        return self

    @available_if(_found_linear)
    def densify(self) -> Self:
        """Make ``coef_`` an ndarray until the next fit, however wide it is."""
        self._sparse = False
        return self

    @property
    def intercept_(self) -> Array:
        """What the linear rule says of an empty document, (1 or C,)."""
        return self._linear().coefficients()[1]

    def _linear(self) -> Model:
        """The model, if it is a linear rule."""
        check_fitted(self)
        if not self.model_.is_linear:
            raise AttributeError(f"a model of method {self.model_.method!r} is no linear rule")
        return self.model_

    def _get_fitted_attr_html(self, doc_link: str = "") -> dict[str, Any]:
        """Nothing: scikit-learn's HTML would compute every fitted attribute, also those as wide as the data."""
        return {}


def _right(known: Array, predicted: Array, y: Any, sample_weight: Any = None) -> Array:
    """The weight of the rows whose class is predicted rightly, and that of all, (2,)."""
    weights = np.ones(len(predicted)) if sample_weight is None else sample_weights(sample_weight, len(predicted))
    classes, codes = match_labels(*encode(one_column(y), len(predicted)), known)
    if (codes == UNLABELLED).any():
        raise InputError(f"y has no label for row {np.argmax(codes == UNLABELLED)}; leave such rows out")
    return np.array([weights[classes[codes] == predicted].sum(), weights.sum()], np.float64)
