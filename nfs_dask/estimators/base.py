"""What sparse naive Bayes estimators share: counting, adding to the counts, and taking from them."""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from nfs_dask._version import __version__
from nfs_dask.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.base import Reduction
from nfs_dask.errors import InputError, PlanError
from nfs_dask.estimators.inputs import (
    check_alpha,
    check_fitted,
    check_prior,
    forced_columns,
    note_features,
    numeric,
    open_labelled,
)
from nfs_dask.estimators.predicting import PredictingMixin
from nfs_dask.estimators.selecting import SelectingMixin
from nfs_dask.estimators.textual import is_of_texts, reader_for, text_features
from nfs_dask.models.bayes import NaiveBayesModel
from nfs_dask.naive_bayes import Counts, Settings
from nfs_dask.selection import number_to_keep
from nfs_dask.sources.base import Source, is_shipped
from nfs_dask.sources.labels import encode, encode_as
from nfs_dask.statistics.base import State
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.running import lift, subtract
from nfs_dask.storage.models import save_model
from nfs_dask.totals import PanelTotals

Names = Callable[[Array], Sequence[str] | None]  # of some columns

MOST_COUNTS = 1 << 30  # bytes that are held in memory; wider counts are solved for panel by panel


class SparseNaiveBayes(PredictingMixin, SelectingMixin, ClassifierMixin, TransformerMixin, BaseEstimator, ABC):
    """A naive Bayes classifier over k features that are chosen together with its parameters.

    The counts stay in memory after a fit, (C, n_features_in_), so that documents can be added and taken away.
    """

    k: Any
    alpha: Any
    always: Any
    fit_prior: Any
    class_prior: Any
    engine: Any
    _texts: Any  # the source whose rows were texts, for a model of those

    @abstractmethod
    def _statistic(self, n_classes: int, source: Source) -> ClassCounts:
        """The counts this method needs of a source."""

    @abstractmethod
    def _counted(self, arrays: dict[str, Array]) -> Array:
        """The totals (C, m) among the arrays of a state."""

    @abstractmethod
    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        """Choose features and estimate."""

    @abstractmethod
    def _scores(self, counts: Counts) -> Array:
        """Gain of each feature, (m,)."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the features and fit the classifier, from nothing.

        Parameters
        ----------
        X : (n, m) matrix, dask array or DataFrame, or Dataset
            Values of zero or more. Nothing is densified; data on disk are read block by block.
        y : (n,) labels, optional
            Strings, integers or booleans. A Dataset brings its own.
        sample_weight : (n,) weights of zero or more, optional
        """
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=True)
        n_classes = dataset.class_counts().n_classes  # refuses data without labels, or with one class only
        assert dataset.classes is not None
        settings = self._settings(dataset.source, n_classes)
        reduction = dataset.reduce(self._statistic(n_classes, dataset.source), self.engine)
        panels = reduction.panels
        refuse_empty_classes(dataset.classes, panels)
        if too_wide(panels, n_classes):
            self._settle_panels(dataset.classes, settings, dataset.source, reduction)
        else:
            self._settle(dataset.classes, panels.state(), settings, dataset.source, reduction)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add documents, and fit anew to all documents so far: any split of the data gives the same model.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : (C,) labels, optional
            All classes there will be; needed at the first call. A class that has had no document yet is not predicted.
        """
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        first = not hasattr(self, "model_")
        if not first:
            self._check_counts()
        declared = self._declared(classes, first)
        note_features(self, X, dataset.source, reset=first)
        settings = self._settings(dataset.source, len(declared))
        state, reduction = self._count_as(dataset, declared)
        if not first:
            state = self._statistic(len(declared), dataset.source).merge(self._state, state)
        self._settle(declared, state, settings, dataset.source, reduction, None if first else self._names)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take documents away that were fitted before: the inverse of `partial_fit`.

        The model is that of the other documents; to the bit where values and weights are whole numbers.

        Parameters
        ----------
        X, y, sample_weight
            The documents, as they were given.
        """
        check_fitted(self)
        self._check_counts()
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=False)
        settings = self._settings(dataset.source, len(self.classes_))
        part, reduction = self._count_as(dataset, self.classes_)
        rest = subtract(self._state, part)
        if not rest.totals["weight"].any():
            raise InputError("no document would be left; make a new estimator instead")
        self._settle(self.classes_, rest, settings, dataset.source, reduction, self._names)
        return self

    def statistic(self, dataset: Dataset) -> ClassCounts:
        """What `fit` would count of a dataset, when all parameters have been checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        """
        n_classes = dataset.class_counts().n_classes
        self._settings(dataset.source, n_classes)
        return self._statistic(n_classes, dataset.source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, in JSON and Zarr; `load_model` reads it.

        Parameters
        ----------
        path
            A new folder or URL, or that of a model, which is then replaced in one step.
        """
        check_fitted(self)
        parameters = self.get_params(deep=False)
        del parameters["engine"]
        save_model(self.model_, {name: _plain(value) for name, value in parameters.items()}, path)

    @property
    def scores_(self) -> Array:
        """Gain of each feature, (n_features_in_,); worked out from the counts when it is asked for."""
        check_fitted(self)
        self._check_counts()
        return self._scores(self._counts())

    @property
    def objective_(self) -> float:
        """Log likelihood of the model, of the counts under smoothing, in nats."""
        check_fitted(self)
        return self.model_.evidence.objective

    @property
    def dual_gap_(self) -> float:
        """No other choice of features has an objective larger by more than this."""
        check_fitted(self)
        return self.model_.evidence.gap

    @property
    def upper_bound_(self) -> float:
        """No choice of as many features has a larger objective."""
        check_fitted(self)
        return self.model_.evidence.objective + self.model_.evidence.gap

    @property
    def certified_(self) -> bool:
        """Whether the features are the best there are, up to rounding."""
        check_fitted(self)
        return self.model_.evidence.certified

    @property
    def n_iter_(self) -> int:
        """How often the gains of all features were evaluated."""
        check_fitted(self)
        return self.model_.evidence.n_evaluations

    def _declared(self, classes: Any, first: bool) -> Array:
        if classes is None:
            if first:
                raise InputError("classes must be passed on the first call to partial_fit: all labels there will be")
            return np.asarray(self.classes_)
        declared, _ = encode(classes)
        if not first and not np.array_equal(declared, self.classes_):
            raise InputError(
                f"classes={declared.tolist()} is not the same as on the last call, {self.classes_.tolist()}; leave it "
                "out, or fit a new estimator"
            )
        return declared

    def _count_as(self, dataset: Dataset, classes: Array) -> tuple[State, Reduction]:
        """The counts of a part of the documents under the classes of the whole."""
        own = dataset.classes
        if own is None:
            dataset.class_counts()  # says what to do about it
        assert own is not None
        positions = encode_as(own, classes)
        if len(classes) * dataset.n_features * 8 > MOST_COUNTS:
            raise PlanError(
                f"the counts of {dataset.n_features:,} features in {len(classes)} classes are too many to hold and add "
                "to; append the documents to a store, and fit that"
            )
        reduction = dataset.reduce(self._statistic(len(classes), dataset.source), self.engine)
        return lift(reduction.state, positions), reduction

    def _settings(self, source: Source, n_classes: int) -> Settings:
        """The parameters, checked before anything is read."""
        return Settings(
            k=number_to_keep(self.k, source.n_features),
            alpha=check_alpha(self.alpha),
            always=forced_columns(self.always, source),
            fit_prior=bool(self.fit_prior),
            class_prior=check_prior(self.class_prior, n_classes),
        )

    def _settle(
        self,
        classes: Array,
        state: State,
        settings: Settings,
        source: Source,
        reduction: Reduction,
        earlier: Names | None = None,
    ) -> None:
        """Solve, and only then remember: an estimator that refused is as it was."""
        counts = Counts.of(classes, state.totals["weight"], self._counted(state.arrays))
        self._learn(counts, settings, int(state.totals["rows"].sum()), source, reduction, earlier)
        self._state = state

    def _settle_panels(self, classes: Array, settings: Settings, source: Source, reduction: Reduction) -> None:
        """Solve over panels, which stay where they are: the estimator has no counts to add to."""
        panels = reduction.panels
        counts = Counts(classes, panels.totals["weight"], PanelTotals(panels, self._counted))
        self._learn(counts, settings, int(panels.totals["rows"].sum()), source, reduction, None)
        if hasattr(self, "_state"):
            del self._state

    def _learn(
        self,
        counts: Counts,
        settings: Settings,
        rows: int,
        source: Source,
        reduction: Reduction,
        earlier: Names | None,
    ) -> None:
        """Documents without names of features have those of earlier ones, and if these were texts, are read as they."""
        if not np.isfinite(counts.documents).all():
            raise InputError("sample weights add up to more than a float holds; scale them down")
        model = self._model(counts, settings)
        known = _names_of(source) or earlier
        names = None if known is None else known(model.support)
        texts = source if is_of_texts(source) or earlier is None else self._texts
        text = text_features(texts, model.support, names)
        self._names, self._texts = known, texts if text is not None else None
        self.model_ = replace(
            model,
            names=None if names is None else tuple(names),
            text=text,
            provenance=_provenance(rows, source, reduction),
        )
        self.reader_ = reader_for(self.model_)
        self.classes_, self.class_count_ = counts.classes, counts.documents.copy()

    def _counts(self) -> Counts:
        return Counts.of(self.classes_, self._state.totals["weight"], self._counted(self._state.arrays))

    def _check_counts(self) -> None:
        if not hasattr(self, "_state"):
            raise InputError(
                "this model was loaded from a file, or has too many features, and holds no counts of all of them; fit "
                "fewer features to add or take away documents, or to score every feature"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # as of scikit-learn's own naive Bayes classifiers of counts
        return tags


def too_wide(panels: Panels, n_classes: int) -> bool:
    """Whether counts are solved for panel by panel, because all of them would be too much to hold."""
    return len(panels) > 1 and n_classes * panels.n_features * 8 > MOST_COUNTS


def refuse_empty_classes(classes: Array, state: State | Panels) -> None:
    """A class without documents has no model."""
    empty = classes[state.totals["weight"] == 0]
    if len(empty):
        raise InputError(
            f"class {empty[0].item()!r} has no documents, or only some of weight zero; leave the class out, or "
            "declare it with partial_fit(..., classes=...)"
        )


def _plain(value: Any) -> Any:
    """A parameter as a JSON value."""
    return value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value


def _names_of(source: Source) -> Names | None:
    """Who knows the names of features, without holding the documents."""
    if source.names(np.zeros(1, np.int64)) is None:
        return None
    if not is_shipped(source):
        return source.names
    return np.array(source.names(np.arange(source.n_features)), object).__getitem__


def _provenance(rows: int, source: Source, reduction: Reduction) -> dict[str, Any]:
    """Where a model comes from, as JSON values."""
    return {
        "fingerprint": source.fingerprint,
        "rows": rows,
        "versions": {"nfs_dask": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "plan": None if reduction.plan is None else reduction.plan.to_json(),
        "reused": reduction.reused,
        "seconds": {"counts": reduction.seconds},
    }
