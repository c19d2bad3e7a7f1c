"""What all sparse classifiers share: what is known of a fit, what is kept of it, and how it travels."""

from __future__ import annotations

import inspect
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask._version import __version__
from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError, PlanError
from nfs_dask.estimators.exporting import ExportingMixin
from nfs_dask.estimators.inputs import check_fitted, numeric
from nfs_dask.estimators.naming import KnownNames, StoredNames, known_names, stored_names
from nfs_dask.estimators.notebook_view import NotebookMixin
from nfs_dask.estimators.plain import plain, restored
from nfs_dask.estimators.predicting import PredictingMixin
from nfs_dask.estimators.selecting import SelectingMixin
from nfs_dask.estimators.textual import reader_for, text_features
from nfs_dask.graphs import token
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.methods.recipe import LongRecipe, Recipe
from nfs_dask.models.model import Model
from nfs_dask.prediction.reader import Reader
from nfs_dask.sources.labels import encode
from nfs_dask.sources.source import Source
from nfs_dask.statistics.panels import Panels
from nfs_dask.store.model_files import save_model
from nfs_dask.units import format_bytes

MOST_NAMED = 1 << 20  # selected features whose names a model has with it
OF_A_RUN = {"passes", "plan", "reads", "reused", "seconds"}  # what provenance says of a fit rather than of a model
MOST_COUNTS = 1 << 30  # bytes of a statistic that are held in memory; a wider one is solved for panel by panel


class SparseClassifier(
    PredictingMixin,
    SelectingMixin,
    ExportingMixin,
    NotebookMixin,
    ABC,
):
    """A classifier over k features that are chosen together with its parameters.

    It is as scikit-learn's classifiers are, without being one: `estimators.scikit_learn` makes it one.
    """

    k: Any
    always: Any
    engine: Any
    classes_: Any
    objective_: float
    upper_bound_: float
    dual_gap_: float
    certified_: bool
    n_iter_: int
    provenance_: dict[str, Any]
    _names: KnownNames | None  # who knows the names of features
    _texts: StoredNames | None  # the store whose rows were texts, for a model of those

    @abstractmethod
    def statistic(self, dataset: Dataset) -> Any:
        """The description of what a fit keeps beside the data, parameters checked; None where it keeps nothing.

        Parameters
        ----------
        dataset
            With labels.
        """

    @abstractmethod
    def plans(self, dataset: Dataset, engine: Engine | None) -> list[Plan]:
        """The passes of a fit, when all parameters have been checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        engine
            Where they would run.
        """

    @abstractmethod
    def recipe(self, dataset: Dataset, n_matrices: int | None = None) -> Recipe | LongRecipe:
        """How cross-validation makes models of many k and alpha with these parameters, which are checked.

        Parameters
        ----------
        dataset
            With labels.
        n_matrices : int, optional
            Of how many matrices its columns are; see `joined`.
        """

    def solves_each_k(self, n_classes: int) -> bool:
        """Whether a path solves for each k by itself, which takes longer than all of them at once."""
        return False

    def joined(self, X: Any) -> tuple[Any, int | None]:
        """What a user gave as one matrix or Dataset, and of how many matrices it is where it was a list of them."""
        return numeric(X), None

    def n_choosable(self, dataset: Dataset, n_matrices: int | None = None) -> int:
        """How many there are of what k counts."""
        return dataset.n_features

    def n_selected(self, dataset: Dataset) -> int | None:
        """How many features a fit selects; None where it takes all without being asked to."""
        return number_to_keep(self.k, dataset.n_features)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, in JSON and Zarr; `load_model` reads it.

        Parameters
        ----------
        path
            A new folder or URL, or that of a model, which is then replaced in one step.
        """
        check_fitted(self)
        save_model(self.model_, self._parameters(), path)

    def _parameters(self) -> dict[str, Any]:
        """What a model file keeps of the parameters, as JSON values."""
        parameters = parameters_of(self)
        del parameters["engine"]
        return {name: _plain(value) for name, value in parameters.items()}

    def _declared(self, classes: Any, first: bool) -> Array:
        """All classes there will be, as `partial_fit` was told them."""
        if classes is None:
            if first:
                raise InputError("classes must be passed on the first call to partial_fit: all labels there will be")
            return np.asarray(self.classes_)
        declared, _ = encode(classes)
        if not first and not np.array_equal(declared, self.classes_):
            raise InputError(
                f"classes={declared.tolist()} is not the same as on last call to partial_fit, "
                f"{self.classes_.tolist()}; leave it out, or fit a new estimator"
            )
        return declared

    def _remember(self, model: Model, source: Source, provenance: dict[str, Any], earlier: KnownNames | None) -> None:
        """Take over a model, with names and texts of the data it comes from; names only of as many as fit a model.

        Documents without names of features have those of earlier ones, and if these were texts, are read as they.
        """
        known = known_names(source, getattr(self, "feature_names_in_", None)) or earlier
        names = None if known is None or len(model.support) > MOST_NAMED else known.names(model.support)
        kept = None if source.text is not None or earlier is None else self._texts
        readable = model.needs_lengths or not model.needs_whole_rows
        texts = source if kept is None else kept.source
        text = text_features(texts, model.support, names, model.needs_lengths) if readable else None
        self._names, self._texts = known, (kept or stored_names(source)) if text is not None else None
        model = replace(model, names=None if names is None else tuple(names), text=text, provenance=provenance)
        vars(self).pop("_sparse", None)
        self.take_over(model, reader_for(model))

    def take_over(self, model: Model, reader: Reader | None) -> None:
        """A model, and what it says under the names that estimators of scikit-learn have for it."""
        self.model_, self.reader_ = model, reader
        self.__dict__.update(self._said_by(model))

    def _said_by(self, model: Any) -> dict[str, Any]:
        """Fitted attributes, which are parts of the model: they are seen by who looks for them, and held once."""
        evidence = model.evidence
        return {
            "classes_": model.classes,
            "class_count_": read_only(model.class_count),
            "objective_": evidence.objective,
            "upper_bound_": evidence.best,
            "dual_gap_": evidence.gap,
            "certified_": evidence.certified,
            "n_iter_": evidence.n_evaluations,
            "provenance_": dict(model.provenance),
        }

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, so that any format takes them; what the model says is said again by it.

        How its fit went is left out, so that equal models have equal pickles and hashes; `save` keeps it.
        """
        state = dict(vars(self))
        if "model_" in state:
            facts = {key: fact for key, fact in self.model_.provenance.items() if key not in OF_A_RUN}
            state["model_"] = replace(self.model_, provenance=facts)
            for name in self._said_by(self.model_):
                state.pop(name, None)
            state["reader_"] = getattr(state["reader_"], "tokenizer", None)
        return {name: plain(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {name: restored(value) for name, value in state.items()}
        model, tokenizer = state.pop("model_", None), state.pop("reader_", None)
        vars(self).update(state)
        if model is not None:
            self.take_over(model, None if model.text is None else Reader(model, tokenizer))

    __dask_tokenize__ = token

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of scikit-learn, which asks
        tags.input_tags.sparse = True
        return tags


def parameters_of(estimator: Any) -> dict[str, Any]:
    """What an estimator was made with, by the names of its parameters in order: scikit-learn's `get_params`."""
    return {name: getattr(estimator, name) for name in sorted(inspect.signature(type(estimator)).parameters)}


def too_wide(panels: Panels, n_classes: int) -> bool:
    """Whether a statistic is solved for panel by panel, because all of it would be too much to hold."""
    return len(panels) > 1 and n_classes * panels.n_features * 8 > MOST_COUNTS


def refuse_too_many(nbytes: int, n_features: int, n_classes: int) -> None:
    """Documents are added to, and taken from, statistics that fit in memory."""
    if nbytes > MOST_COUNTS:
        raise PlanError(
            f"the sums of {n_features:,} features in {n_classes} classes are too many to hold and add to; append the "
            "documents to a store, and fit that"
        )


def refuse_wide(n_features: int) -> None:
    """A matrix of all features by all features is held in memory."""
    nbytes = 8 * n_features**2
    if nbytes > MOST_COUNTS:
        most = int((MOST_COUNTS / 8) ** 0.5)
        raise PlanError(
            f"the covariances of {n_features:,} features take {format_bytes(nbytes)}, more than the "
            f"{format_bytes(MOST_COUNTS)} that are held in memory; give at most {most:,} features, or take "
            'covariance="within"'
        )


def refuse_nothing(weight: Array) -> None:
    """Documents of weight zero alone have no model. A class may have no others: it is never predicted."""
    if not weight.any():
        raise InputError("all documents have weight zero; give at least one of them more")


def provenance_of(rows: int, source: Source, reduction: Reduction) -> dict[str, Any]:
    """Where a model of one pass comes from, as JSON values."""
    return provenance(
        rows,
        source,
        plan=None if reduction.plan is None else reduction.plan.to_json(),
        reused=reduction.reused,
        seconds={"counts": reduction.seconds},
    )


def provenance(rows: int, source: Source, **facts: Any) -> dict[str, Any]:
    """Where a model comes from, as JSON values."""
    return {
        "fingerprint": source.fingerprint,
        "rows": rows,
        "versions": {"nfs_dask": __version__, "numpy": np.__version__, "python": platform.python_version()},
        **({} if source.text is None else {"columns": source.text.report.get("columns")}),
        **facts,
    }


def _plain(value: Any) -> Any:
    """A parameter as a JSON value."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):  # by label, which may be written as text
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def read_only(array: Array) -> Array:
    """The same numbers, safe from who looks at them."""
    seen = array.view()
    seen.flags.writeable = False
    return seen
