"""Parameters with a value for each class: by label, in the order of the labels, or in a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, did_you_mean
from nfs_dask.methods.class_factors import BALANCED, ClassWeight

UNIFORM = "uniform"


def check_prior(class_prior: Any, classes: Array) -> Array | None:
    """Priors given by the user, one for each class."""
    if class_prior is None:
        return None
    if isinstance(class_prior, str):
        if class_prior != UNIFORM:
            raise InputError(
                f"class_prior={class_prior!r}; give {UNIFORM!r} for equal ones, a probability for each label such as "
                '{"spam": 0.2, "ham": 0.8}, or a list of them in the sorted order of the labels'
            )
        return np.full(len(classes), 1 / len(classes))
    if isinstance(class_prior, Mapping):
        found = _by_label("class_prior", class_prior, classes)
        if missing := [label for label, value in zip(classes.tolist(), found, strict=True) if value is None]:
            raise InputError(f"class_prior= says nothing of {_some(missing)}; give each class a probability, or 0")
        class_prior = found
    prior = _numbers("class_prior", class_prior)
    if prior.shape != (len(classes),):
        raise InputError(
            f"Number of priors must match number of classes: class_prior has shape {prior.shape}, and there are "
            f"{len(classes)} classes; give one number for each, in the sorted order of the labels"
        )
    if not np.isfinite(prior).all() or (prior < 0).any() or not prior.any():
        raise InputError(f"class_prior={prior.tolist()}; give probabilities of 0 or more, at least one above 0")
    return prior


def check_class_weight(class_weight: Any, classes: Array) -> ClassWeight | None:
    """Weights of classes: those that are not named weigh 1."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == BALANCED:
        return BALANCED
    if not isinstance(class_weight, Mapping):
        raise InputError(
            f"class_weight={class_weight!r}; give {BALANCED!r}, or a weight for labels such as " + '{"spam": 5.0}'
        )
    found = [1.0 if value is None else value for value in _by_label("class_weight", class_weight, classes)]
    weights = _numbers("class_weight", found)
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InputError(
            f"class_weight={dict(class_weight)!r}; give finite weights above 0, and leave documents out with where= or "
            "a sample weight of 0"
        )
    return weights


def _by_label(name: str, given: Mapping[Any, Any], classes: Array) -> list[Any]:
    """The value of each class, None for those without one. Labels may be written as texts, as commands have them."""
    labels = classes.tolist()
    places = {label: i for i, label in enumerate(labels)}
    written = {str(label): i for i, label in enumerate(labels)}
    found: list[Any] = [None] * len(labels)
    for key, value in given.items():
        label = key.item() if isinstance(key, np.generic) else key
        place = places.get(label, written.get(label) if isinstance(label, str) else None)
        if place is None:
            near = did_you_mean(label, written) if isinstance(label, str) else ""
            raise InputError(f"{name}= names the class {label!r}, and the classes are {_some(labels)}{near}")
        found[place] = value
    return found


def _numbers(name: str, given: Any) -> Array:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}={given!r} has what is no number; give one number for each class") from None


def _some(labels: list[Any]) -> str:
    return ", ".join(map(repr, labels[:5])) + (f" and {len(labels) - 5:,} more" if len(labels) > 5 else "")
