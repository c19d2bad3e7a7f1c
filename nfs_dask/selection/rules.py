"""Rules that choose a number of features from a path, and the data it was made of. `nfs_dask.registry` lists them.

References: NFS section 3.6, the elbow heuristic; docs/mathematics.md 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier, parameters_of
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.registry import RULES, rule_named
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.cross_validate import cross_validate
from nfs_dask.selection.path_table import Path
from nfs_dask.units import several

BEND = 0.05  # of all gain; a curve that is nowhere so far above its chord has no elbow to speak of


@dataclass(frozen=True)
class PathData:
    """The data and the estimator of a path. Data in memory, and collections, are not pickled with it."""

    given: tuple[Any, Any, Any] | None  # X, y and sample weights, as the user gave them; None: they were left behind
    dataset: Dataset | None
    method: str
    estimator: SparseClassifier  # of all parameters but k, not fitted

    def __reduce__(self) -> Any:
        stays = self.dataset is None or self.dataset.source.is_shipped
        given, dataset = (None, None) if stays else (self.given, self.dataset)
        return type(self), (given, dataset, self.method, self.estimator)

    def choose(self, path: Path, rule: str, **options: Any) -> Chosen:
        """Return the k of a path that a rule chooses; see `Path.choose`."""
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


def by_elbow(_data: Any, path: Path, _options: Mapping[str, Any]) -> Chosen:
    """Return the k where the curve of gains, over log k, is farthest above the line between its ends.

    Gains grow ever more slowly, and over millions of features nearly all of them bring next to nothing: over k itself
    the elbow would move with the number of features that happen to be there. Over log k it asks when another doubling
    stops being worth what it was. Where that is at no k, since gains grow ever faster with log k, as they may over
    millions of features that all say a little, it goes by k itself.
    """
    ks, gains = path.ks, np.asarray(path.value, np.float64)
    finite = np.isfinite(gains)
    if finite.sum() < 3:
        raise InputError(
            f'choose("elbow") looks at a curve, and this path has {int(finite.sum())} values of k with a finite gain; '
            "make it with at least three, such as ks=None for many"
        )
    ks, gains = ks[finite], gains[finite]
    span = gains[-1] - gains[0]
    height = (gains - gains[0]) / span if span > 0 else np.zeros(len(gains))
    above, over = height - np.log(ks / ks[0]) / np.log(ks[-1] / ks[0]), "log k"
    best = int(np.argmax(above))
    if span > 0 and best in (0, len(ks) - 1):
        above, over = height - (ks - ks[0]) / (ks[-1] - ks[0]), "k, as over log k it has no elbow,"
        best = int(np.argmax(above))
    near = np.flatnonzero(above >= above[best] - 0.01)
    shares = gains / gains[-1] if gains[-1] else gains
    table = _records(ks, gain=gains, share=shares, above_chord=above)
    k, share = int(ks[best]), shares[best] if gains[-1] else 1.0
    why = (
        f"{several(k, 'feature has', 'features have')} {share:.1%} of the gain of {int(ks[-1]):,}; here the curve over "
        f"{over} is farthest above the line between its ends"
    )
    why += ", so that each further doubling brings less than the average one" if over == "log k" else ""
    if over != "log k" or above[best] < BEND:
        why += (
            '. But it hardly bends: gains grow evenly with log k or faster, and another rule says more, such as "near"'
        )
    return Chosen(k, rule="elbow", why=why, table=table, interval=(int(ks[near[0]]), int(ks[near[-1]])))


def by_error(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """Return the k of smallest predicted error, from one pass; of equal ones the smallest."""
    ks = numbers_to_keep(_several(path, options), path.n_features)
    if not hasattr(data.estimator, "predicted_errors"):
        raise InputError(
            f'the errors of {data.method} cannot be predicted; choose with "cv" or "1se", which try them out'
        )
    assert data.dataset is not None
    errors = data.estimator.predicted_errors(data.dataset, ks, options.get("engine", data.estimator.engine))
    best = int(np.argmin(errors))
    near = ks[errors <= errors[best] + 0.001]
    why = (
        f"{int(ks[best]):,} features have the smallest predicted error, {errors[best]:.4f}; "
        f"from {int(near[0]):,} to {int(near[-1]):,} features it is larger by 0.001 at most"
    )
    table = _records(ks, error=errors)
    return Chosen(int(ks[best]), rule="error", why=why, table=table, interval=(int(near[0]), int(near[-1])))


def by_accuracy(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """Return the k of the best accuracy in cross-validation."""
    return _validated("cv", data, path, options)


def within_one_error(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """Return the smallest k within one standard error of the best accuracy in cross-validation."""
    return _validated("1se", data, path, options)


def near_the_best(data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    """Return the smallest k within a share of the best in cross-validation."""
    return _validated("near", data, path, options)


def _validated(rule: Any, data: PathData, path: Path, options: Mapping[str, Any]) -> Chosen:
    assert data.given is not None
    X, y, weights = data.given
    parameters = {**path.parameters}
    alpha = parameters.pop("alpha", 1.0)
    for name in ("binarize", "always"):
        value = parameters_of(data.estimator).get(name)
        parameters |= {} if value is None else {name: value}
    table = cross_validate(
        X,
        y,
        method=data.method,
        ks=_several(path, options),
        alphas=options.get("alphas", (alpha,)),
        folds=options.get("folds", 5),
        sample_weight=weights,
        engine=options.get("engine", data.estimator.engine),
        **parameters,
    )
    return table.choose(rule, options.get("by", "accuracy"), options.get("within"))


def _several(path: Path, options: Mapping[str, Any]) -> Any:
    """Return the k that were asked for, else about twenty of the path."""
    return options["ks"] if "ks" in options else path.ks[path.sample()].tolist()


def _records(ks: Array, **columns: Array) -> list[dict[str, Any]]:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [{"k": int(k), **dict(zip(columns, row, strict=True))} for k, row in zip(ks.tolist(), rows, strict=True)]
