"""Choosing from a path with the data it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.centers import SparseCentroid
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.naive_bayes import SparseNaiveBayes
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.methods.predicted_error import predict_error
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.cross_validate import cross_validate
from nfs_dask.selection.path_errors import bernoulli_error, centers_error
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.recipes import CountsRecipe, MomentsRecipe
from nfs_dask.selection.rules import elbow, smallest_error
from nfs_dask.sources.source import is_shipped
from nfs_dask.statistics.lengths import lengths_in
from nfs_dask.statistics.moments import ClassMoments, moments
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import State

RULES = ("elbow", "error", "1se", "cv")
Validating = Literal["1se", "cv"]
VALIDATING: tuple[Validating, ...] = ("1se", "cv")


@dataclass(frozen=True)
class Rules:
    """What a path was made of. Data in memory, and collections, do not travel with it."""

    given: tuple[Any, Any, Any] | None  # X, y and sample weights, as the user gave them; None: they were left behind
    dataset: Dataset | None
    method: str
    estimator: SparseClassifier  # of all parameters but k, not fitted

    def __reduce__(self) -> Any:
        stays = self.dataset is None or is_shipped(self.dataset.source)
        given, dataset = (None, None) if stays else (self.given, self.dataset)
        return type(self), (given, dataset, self.method, self.estimator)

    def choose(self, path: Path, rule: str, **options: Any) -> Chosen:
        """The k of a path that a rule chooses; see `Path.choose`."""
        if rule not in RULES:
            raise InputError(f"rule={rule!r}; give one of {', '.join(map(repr, RULES))}")
        if rule != "elbow" and self.given is None:
            raise InputError(
                f'choose("{rule}") reads the data, which did not travel with this path; make it anew where they are'
            )
        if rule in VALIDATING:
            return self._validate(path, rule, **options)
        choose = self._elbow if rule == "elbow" else self._error
        if given := [name for name, value in options.items() if value is not None and name not in ("ks", "engine")]:
            raise InputError(f"{given[0]} is for cross-validation, and the rule is {rule!r}; leave it out")
        return choose(path, options.get("ks"), options.get("engine"))

    @property
    def _data(self) -> Dataset:
        assert self.dataset is not None
        return self.dataset

    def _elbow(self, path: Path, ks: Any, engine: Engine | None) -> Chosen:
        if ks is not None:
            raise InputError('"elbow" looks at the whole path; make a path of these ks instead')
        return elbow(path)

    def _validate(
        self,
        path: Path,
        rule: Validating,
        *,
        ks: Iterable[Any] | None = None,
        folds: Any = None,
        alphas: Iterable[float] | None = None,
        engine: Engine | None = None,
    ) -> Chosen:
        assert self.given is not None
        X, y, weights = self.given
        parameters = {**path.parameters}
        alpha = parameters.pop("alpha", 1.0)
        for name in ("binarize", "always"):
            value = self.estimator.get_params().get(name)
            parameters |= {} if value is None else {name: value}
        table = cross_validate(
            X,
            y,
            method=self.method,
            ks=_several(path, ks),
            alphas=(alpha,) if alphas is None else alphas,
            folds=5 if folds is None else folds,
            sample_weight=weights,
            engine=self.estimator.engine if engine is None else engine,
            **parameters,
        )
        return table.choose(rule)

    def _error(self, path: Path, ks: Iterable[Any] | None, engine: Engine | None) -> Chosen:
        engine = self.estimator.engine if engine is None else engine
        wanted = numbers_to_keep(_several(path, ks), path.n_features)
        if isinstance(self.estimator, SparseNaiveBayes):
            errors = self._naive_bayes_errors(wanted, engine)
        elif isinstance(self.estimator, SparseCentroid) and self.method != "l1" and self.estimator.covariance != "full":
            errors = self._centers_errors(wanted, engine)
        else:
            raise InputError(
                f'the errors of {self.method} cannot be predicted; choose with "cv" or "1se", which try them out'
            )
        return smallest_error(wanted, errors, "predicted error")

    def _naive_bayes_errors(self, ks: Array, engine: Engine | None) -> Array:
        assert isinstance(self.estimator, SparseNaiveBayes)
        dataset = self._data
        counting = replace(self.estimator.statistic(dataset), with_lengths=self.method == "multinomial")
        panels = dataset.reduce(counting, engine).panels
        recipe = CountsRecipe(counting, self.estimator.settings(dataset))
        fit = recipe.fitting(dataset.known_classes(), panels)
        models = (fit(k, float(self.estimator.alpha)) for k in ks.tolist())
        return np.array([_naive_bayes_error(model, panels) for model in models])

    def _centers_errors(self, ks: Array, engine: Engine | None) -> Array:
        assert isinstance(self.estimator, SparseCentroid)
        dataset = self._data
        classes = dataset.known_classes()
        panels = dataset.reduce(ClassMoments(len(classes), squares=True), engine).panels
        fit = MomentsRecipe(self.estimator.settings(dataset)).fitting(classes, panels)
        return np.array([_centers_error(fit(k, None), panels) for k in ks.tolist()])


def _several(path: Path, ks: Any) -> Any:
    """The k that are looked at: those asked for, else about twenty of the path."""
    return path.ks[path.sample()].tolist() if ks is None else ks


def _naive_bayes_error(model: Any, panels: Panels) -> float:
    assert isinstance(model, NaiveBayesModel)
    if model.method == "bernoulli":
        return bernoulli_error(model)
    return float(predict_error(model, n_tokens=lengths_in(panels.totals["lengths"])).error)


def _centers_error(model: Any, panels: Panels) -> float:
    assert isinstance(model, CentersModel)
    within = moments(State(panels.columns(model.support), panels.totals)).within
    assert within is not None
    return centers_error(model, within)
