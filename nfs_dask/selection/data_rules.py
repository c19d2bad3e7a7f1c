"""Choosing from a path with the data it was made of. The rules are listed in `nfs_dask.registry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier, parameters_of
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.registry import RULES, rule_named
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.cross_validate import cross_validate
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.rules import elbow, smallest_error


@dataclass(frozen=True)
class PathData:
    """What a path was made of. Data in memory, and collections, do not travel with it."""

    given: tuple[Any, Any, Any] | None  # X, y and sample weights, as the user gave them; None: they were left behind
    dataset: Dataset | None
    method: str
    estimator: SparseClassifier  # of all parameters but k, not fitted

    def __reduce__(self) -> Any:
        stays = self.dataset is None or self.dataset.source.is_shipped
        given, dataset = (None, None) if stays else (self.given, self.dataset)
        return type(self), (given, dataset, self.method, self.estimator)

    def choose(self, path: Path, rule: str, **options: Any) -> Chosen:
        """The k of a path that a rule chooses; see `Path.choose`."""
        known = rule_named(rule)
        if known.reads and self.given is None:
            raise InputError(
                f'choose("{rule}") reads the data, which did not travel with this path; make it anew where they are'
            )
        given = {option: value for option, value in options.items() if value is not None}
        for option in given.keys() - known.takes - {"engine"}:
            if option == "ks":
                raise InputError(f'"{rule}" looks at the whole path; make a path of these ks instead')
            takers = ", ".join(repr(name) for name, other in RULES.items() if option in other.takes)
            of = "cross-validation" if option in ("folds", "alphas", "by") else "others"
            raise InputError(f"{option} is for {of} ({takers}), and the rule is {rule!r}; leave it out")
        chosen: Chosen = known.function()(self, path, given)
        return chosen

    def engine(self, options: Mapping[str, Any]) -> Engine | None:
        """Where passes run: as was said of the rule, else as of the path."""
        engine: Engine | None = options.get("engine", self.estimator.engine)
        return engine


def by_elbow(_data: PathData, path: Path, _options: Mapping[str, Any]) -> Chosen:
    """Where the curve of gains bends most."""
    return elbow(path)


def by_error(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """The smallest predicted error, from one pass."""
    wanted = numbers_to_keep(_several(path, options), path.n_features)
    if not hasattr(data.estimator, "predicted_errors"):
        raise InputError(
            f'the errors of {data.method} cannot be predicted; choose with "cv" or "1se", which try them out'
        )
    assert data.dataset is not None
    errors = data.estimator.predicted_errors(data.dataset, wanted, data.engine(options))
    return smallest_error(wanted, errors, "predicted error")


def by_accuracy(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """The best accuracy in cross-validation."""
    return _validated(data, path, options).choose("cv", options.get("by", "accuracy"))


def within_one_error(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """The smallest k within one standard error of the best accuracy in cross-validation."""
    return _validated(data, path, options).choose("1se", options.get("by", "accuracy"))


def near_the_best(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """The smallest k within a share of the best in cross-validation."""
    return _validated(data, path, options).choose("near", options.get("by", "accuracy"), options.get("within"))


def _validated(data: PathData, path: Path, options: Mapping[str, Any]) -> Any:
    assert data.given is not None
    X, y, weights = data.given
    parameters = {**path.parameters}
    alpha = parameters.pop("alpha", 1.0)
    for name in ("binarize", "always"):
        value = parameters_of(data.estimator).get(name)
        parameters |= {} if value is None else {name: value}
    return cross_validate(
        X,
        y,
        method=data.method,
        ks=_several(path, options),
        alphas=options.get("alphas", (alpha,)),
        folds=options.get("folds", 5),
        sample_weight=weights,
        engine=data.engine(options),
        **parameters,
    )


def _several(path: Path, options: Mapping[str, Any]) -> Any:
    """The k that are looked at: those asked for, else about twenty of the path."""
    return options.get("ks", path.ks[path.sample()].tolist())
