"""Choosing from a path with the data it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.cross_validate import cross_validate
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.rules import elbow, smallest_error
from nfs_dask.sources.source import is_shipped

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
        if not hasattr(self.estimator, "predicted_errors"):
            raise InputError(
                f'the errors of {self.method} cannot be predicted; choose with "cv" or "1se", which try them out'
            )
        errors = self.estimator.predicted_errors(self._data, wanted, engine)
        return smallest_error(wanted, errors, "predicted error")


def _several(path: Path, ks: Any) -> Any:
    """The k that are looked at: those asked for, else about twenty of the path."""
    return path.ks[path.sample()].tolist() if ks is None else ks
