"""Models of centers survive the disk, and damaged ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.model import Evidence
from nfs_dask.store.model_files import read_model, save_model
from tests.store.test_model_files import MODEL, TEXT, assert_equal, edit, swap

CENTERS = CentersModel(
    method="mahalanobis",
    classes=MODEL.classes,
    class_count=np.array([3.0, 0.0]),
    n_features=100,
    support=np.array([3, 70]),
    evidence=Evidence(12.5, 0.0, True, None, 1),
    centers=np.array([[-1.5, 1e300], [0.0, 0.0]]),
    pooled=np.array([0.25, -1e-300]),
    variances=np.array([0.0, 2.5]),
    covariance="total",
    names=MODEL.names,
    provenance=MODEL.provenance,
)

WHITENED = replace(
    CENTERS,
    n_features=80,
    variances=None,
    covariance="full",
    root=np.linspace(-1, 1, 160).reshape(80, 2),
    shift=np.linspace(-9, 9, 80),
)


@pytest.mark.parametrize(
    "model",
    [
        CENTERS,
        replace(CENTERS, method="l1", covariance=None, variances=None, text=TEXT.text, names=TEXT.names),
        replace(CENTERS, method="l2", covariance=None, variances=None, n_features=2**40, centers=np.zeros((2, 2))),
        WHITENED,
        replace(WHITENED, shift=None),
    ],
)
def test_centers_survive_the_disk(model: CentersModel, tmp_path: Path) -> None:
    save_model(model, {"k": 2}, tmp_path / "m")
    read, parameters = read_model(tmp_path / "m")
    assert_equal(read, model)
    assert parameters == {"k": 2}


def test_a_model_replaces_one_of_another_family(tmp_path: Path) -> None:
    for model in (MODEL, CENTERS, MODEL):
        save_model(model, {}, tmp_path / "m")
        assert_equal(read_model(tmp_path / "m")[0], model)


def add(name: str, array: np.ndarray) -> Callable[[Path], None]:
    """Put one array more into a model."""

    def apply(place: Path) -> None:
        import zarr

        zarr.open_group(next(place.glob("arrays-*")), mode="a").create_array(name, data=array, chunks=array.shape)
        edit(lambda h: h["arrays"].update({name: list(array.shape)}))(place)

    return apply


HOSTILE_CENTERS: dict[str, Callable[[Path], Any]] = {
    "a method of no kind": edit(lambda h: h.update(method="l3")),
    "a method that is a list": edit(lambda h: h.update(method=["l2"])),
    "a method of another family": edit(lambda h: h.update(method="multinomial")),
    "a method without variances": edit(lambda h: h.update(method="l2", covariance=None)),
    "no covariance": edit(lambda h: h.pop("covariance")),
    "a covariance of no kind": edit(lambda h: h.update(covariance="half")),
    "a covariance that is a list": edit(lambda h: h.update(covariance=["total"])),
    "a covariance without its root": edit(lambda h: h.update(covariance="full")),
    "a covariance of another method": edit(lambda h: h.update(method="l1")),
    "no variances": edit(lambda h: h["arrays"].pop("variances")),
    "no centres": edit(lambda h: h["arrays"].pop("centers")),
    "no common centre": edit(lambda h: h["arrays"].pop("pooled")),
    "weights of naive Bayes": add("present", np.zeros((2, 2))),
    "a shift without a root": add("shift", np.zeros(100)),
    "centres of other features": swap("centers", np.zeros((2, 3))),
    "centres of other classes": swap("centers", np.zeros((3, 2))),
    "centres of whole numbers": swap("centers", np.zeros((2, 2), np.int64)),
    "centres that are no numbers": swap("centers", np.full((2, 2), np.nan)),
    "a common centre far away": swap("pooled", np.array([0.0, np.inf])),
    "a longer common centre": swap("pooled", np.zeros(3)),
    "variances below zero": swap("variances", np.array([1.0, -1.0])),
    "infinite variances": swap("variances", np.array([1.0, np.inf])),
    "no documents": swap("class_count", np.zeros(2)),
    "fewer than no documents": swap("class_count", np.array([5.0, -1.0])),
    "documents that are no numbers": swap("class_count", np.array([5.0, np.nan])),
    "a support out of order": swap("support", np.array([70, 3])),
    "features that are no number": edit(lambda h: h.update(n_features="100")),
}

HOSTILE_ROOTS: dict[str, Callable[[Path], Any]] = {
    "a root of other data": swap("root", np.zeros((79, 2))),
    "a flat root": swap("root", np.zeros(160)),
    "a root that is no number": swap("root", np.full((80, 2), np.nan)),
    "a longer shift": swap("shift", np.zeros(81)),
    "an infinite shift": swap("shift", np.full(80, np.inf)),
    "variances beside the root": add("variances", np.ones(2)),
    "more features than the root has": edit(lambda h: h.update(n_features=81)),
    "texts": edit(lambda h: h.update(text={"settings": {}, "regions": []})),
    "a covariance that needs no root": edit(lambda h: h.update(covariance="within")),
}


@pytest.mark.parametrize(
    ("model", "attack"),
    [
        *((CENTERS, attack) for attack in HOSTILE_CENTERS.values()),
        *((WHITENED, attack) for attack in HOSTILE_ROOTS.values()),
    ],
    ids=[*HOSTILE_CENTERS, *HOSTILE_ROOTS],
)
def test_hostile_centers_are_refused(model: CentersModel, attack: Callable[[Path], Any], tmp_path: Path) -> None:
    save_model(model, {}, tmp_path / "m")
    attack(tmp_path / "m")
    with pytest.raises(StoreError):
        read_model(tmp_path / "m")
