"""What a model file says of each family of models: facts for its JSON, arrays, and what both have to be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel

if TYPE_CHECKING:
    from nfs_dask.models.centers import CentersModel
    from nfs_dask.models.hybrid import HybridModel

COVARIANCES = ("within", "total", "full")


class Family(ABC):
    """Models that are kept alike. Arrays that `make` is given are of the shapes that `shapes` asks for."""

    @abstractmethod
    def facts(self, model: Any) -> dict[str, Any]:
        """What goes into JSON, beside what every model has."""

    @abstractmethod
    def arrays(self, model: Any) -> dict[str, Array | None]:
        """What goes into arrays, beside what every model has; None where there is none."""

    @abstractmethod
    def shapes(self, facts: Mapping[str, Any], n_classes: int, k: int, n_features: int) -> dict[str, list[int]]:
        """Of these arrays; facts are checked only as far as they are used."""

    @abstractmethod
    def make(self, facts: Mapping[str, Any], arrays: Mapping[str, Array], common: Mapping[str, Any]) -> Model:
        """The model again; anything that is not what one holds raises what damaged JSON raises."""


class NaiveBayesFamily(Family):
    """Logarithms of probabilities, which may be infinite."""

    def facts(self, model: NaiveBayesModel) -> dict[str, Any]:
        return {"alpha": model.alpha, "threshold": model.threshold, "binary_only": model.binary_only}

    def arrays(self, model: NaiveBayesModel) -> dict[str, Array | None]:
        arrays = {"present": model.present, "absent": model.absent, "rest": model.rest}
        return {**arrays, "class_log_prior": model.class_log_prior}

    def shapes(self, facts: Mapping[str, Any], n_classes: int, k: int, n_features: int) -> dict[str, list[int]]:
        by_class = {"rest": [n_classes], "class_log_prior": [n_classes]}
        return {"present": [n_classes, k], "absent": [n_classes, k], **by_class}

    def make(self, facts: Mapping[str, Any], arrays: Mapping[str, Array], common: Mapping[str, Any]) -> NaiveBayesModel:
        present, absent, prior = arrays["present"], arrays.get("absent"), arrays["class_log_prior"]
        if any(_is_nan(weights) for weights in (present, absent, prior) if weights is not None):
            raise ValueError("its weights are not those of a model")
        rest, others = arrays.get("rest"), len(common["support"]) < common["n_features"]
        if (rest is not None) != (common["method"] == "error" and others):
            raise ValueError("a weight of features that are not selected, or none")
        if rest is not None and not (rest.dtype.kind == "f" and np.isfinite(rest).all()):
            raise ValueError("the weight of features that are not selected is none")
        return NaiveBayesModel(
            **common,
            class_log_prior=prior,
            alpha=float(facts["alpha"]),
            present=present,
            absent=absent,
            threshold=None if facts["threshold"] is None else float(facts["threshold"]),
            binary_only=bool(facts["binary_only"]),
            rest=rest,
        )


class CentersFamily(Family):
    """Centres, and what distances are measured in."""

    def facts(self, model: CentersModel) -> dict[str, Any]:
        return {"covariance": model.covariance}

    def arrays(self, model: CentersModel) -> dict[str, Array | None]:
        return {name: getattr(model, name) for name in self.shapes({}, 1, 1, 1)}

    def shapes(self, facts: Mapping[str, Any], n_classes: int, k: int, n_features: int) -> dict[str, list[int]]:
        return {
            "centers": [n_classes, k],
            "pooled": [k],
            "variances": [k],
            "root": [n_features, k],
            "shift": [n_features],
        }

    def make(self, facts: Mapping[str, Any], arrays: Mapping[str, Array], common: Mapping[str, Any]) -> CentersModel:
        from nfs_dask.models.centers import CentersModel

        method, covariance = common["method"], facts["covariance"]
        if covariance not in (COVARIANCES if method == "mahalanobis" else (None,)):
            raise ValueError(f"a covariance {covariance!r} of method {method!r}")
        given = {name: arrays[name] for name in self.shapes({}, 1, 1, 1) if name in arrays}
        if given.keys() - {"shift"} != self._needed(covariance) or ("shift" in given and "root" not in given):
            raise ValueError(f"arrays {sorted(given)} of method {method!r} and covariance {covariance!r}")
        if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in given.values()):
            raise ValueError("its centres are not those of a model")
        if "variances" in given and (given["variances"] < 0).any():
            raise ValueError("variances below 0")
        return CentersModel(
            **common,
            covariance=covariance,
            centers=given["centers"],
            pooled=given["pooled"],
            variances=given.get("variances"),
            root=given.get("root"),
            shift=given.get("shift"),
        )

    def _needed(self, covariance: str | None) -> set[str]:
        """The arrays that a model has in any case."""
        spread = set() if covariance is None else {"root" if covariance == "full" else "variances"}
        return {"centers", "pooled"} | spread


class HybridFamily(Family):
    """Parameters, and the logarithms of probabilities: of one table for all regions, or of one for each."""

    def facts(self, model: HybridModel) -> dict[str, Any]:
        return {"alpha": model.alpha, "n_regions": model.n_regions, "normalize": model.normalize}

    def arrays(self, model: HybridModel) -> dict[str, Array | None]:
        shared = model.log_probabilities.ndim == 2
        return {
            "theta": model.theta,
            "log_probabilities": model.log_probabilities if shared else None,
            "region_log_probabilities": None if shared else model.log_probabilities,
        }

    def shapes(self, facts: Mapping[str, Any], n_classes: int, k: int, n_features: int) -> dict[str, list[int]]:
        n_regions = facts["n_regions"]
        if type(n_regions) is not int or not 0 < n_regions <= k or k % n_regions or n_features % n_regions:
            raise ValueError(f"{n_regions!r} regions of {n_features} features, {k} of them selected")
        return {
            "theta": [n_classes - 1 + n_regions],
            "log_probabilities": [n_classes, k // n_regions],
            "region_log_probabilities": [n_classes, n_regions, k // n_regions],
        }

    def make(self, facts: Mapping[str, Any], arrays: Mapping[str, Array], common: Mapping[str, Any]) -> HybridModel:
        from nfs_dask.models.hybrid import HybridModel

        tables = [arrays[name] for name in ("log_probabilities", "region_log_probabilities") if name in arrays]
        if len(tables) != 1:
            raise ValueError(f"{len(tables)} tables of {len(common['classes'])} classes")
        theta, logs = arrays["theta"], tables[0]
        if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in (theta, logs)):
            raise ValueError("its parameters are not those of a model")
        alpha, normalize = facts["alpha"], facts["normalize"]
        if type(normalize) is not bool or type(alpha) not in (int, float) or not 0 < alpha < np.inf:
            raise ValueError(f"alpha {alpha!r}, and normalize {normalize!r}")
        _check_same_words(common["support"], facts["n_regions"], common["n_features"])
        return HybridModel(
            **common,
            theta=theta,
            log_probabilities=logs,
            n_regions=facts["n_regions"],
            normalize=normalize,
            alpha=float(alpha),
        )


def _is_nan(weights: Array) -> bool:
    """Whether anything but floats, which may be infinite, is among them."""
    return weights.dtype.kind != "f" or bool(np.isnan(weights).any())


def _check_same_words(support: Array, n_regions: int, n_features: int) -> None:
    """Refuse a support that has other words in one region than in the first."""
    by_region, n_words = support.reshape(n_regions, -1), n_features // n_regions
    if any((words - region * n_words != by_region[0]).any() for region, words in enumerate(by_region)):
        raise ValueError("its regions have different words")
    if by_region[0, 0] < 0 or by_region[0, -1] >= n_words:
        raise ValueError("its words are not those of a region")
