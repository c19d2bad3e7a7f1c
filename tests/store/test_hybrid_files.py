"""Hybrid models survive the disk, and damaged ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Evidence
from nfs_dask.store.model_files import read_model, save_model
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings
from tests.store.test_center_files import add
from tests.store.test_model_files import MODEL, assert_equal, edit, swap

HYBRID = HybridModel(
    method="hybrid",
    classes=MODEL.classes,
    class_count=np.array([3.0, 4.5]),
    n_features=100,
    support=np.array([3, 20, 53, 70]),
    evidence=Evidence(-12.5, 0.25, False, np.array([0.25, 0.75]), 9),
    theta=np.array([-0.5, 1e300, -2.0]),
    log_probabilities=np.array([[-1.5, -1e300], [-0.25, -3.0]]),
    n_regions=2,
    normalize=True,
    alpha=0.5,
    names=("s:money", "s:tea", "b:money", "b:tea"),
    provenance=MODEL.provenance,
)
SEPARATE = replace(HYBRID, log_probabilities=-np.arange(8.0).reshape(2, 2, 2), normalize=False)
TEXTS = TextFeatures(TextSettings(), 50, 7, ("money", "tea", "money", "tea"), regions=("s", "b"))
THREE = replace(
    HYBRID,
    classes=np.array([False, True]),
    n_features=4,
    support=np.arange(4),
    n_regions=4,
    theta=-np.arange(5.0),
    log_probabilities=-np.ones((2, 1)),
)


@pytest.mark.parametrize("model", [HYBRID, SEPARATE, replace(HYBRID, text=TEXTS), replace(HYBRID, names=None), THREE])
def test_hybrids_survive_the_disk(model: HybridModel, tmp_path: Path) -> None:
    save_model(model, {"regions": None, "k": 2}, tmp_path / "m")
    read, parameters = read_model(tmp_path / "m")
    assert_equal(read, model)
    assert parameters == {"regions": None, "k": 2}


def test_a_wide_model_is_arrays(tmp_path: Path) -> None:
    width = 1 << 19
    table = np.log(np.random.default_rng(0).dirichlet(np.ones(width), 3))
    wide = replace(
        HYBRID,
        classes=np.arange(3),
        class_count=np.ones(3),
        n_features=2 * width,
        support=np.arange(2 * width),
        evidence=Evidence(-1.0, 0.0, True, None, 5),
        theta=np.zeros(4),
        log_probabilities=table,
        names=None,
    )
    save_model(wide, {}, tmp_path / "m")
    assert_equal(read_model(tmp_path / "m")[0], wide)
    assert (tmp_path / "m" / "model.json").stat().st_size < 10_000
    assert sum(file.stat().st_size for file in (tmp_path / "m").rglob("*")) < 1.1 * table.nbytes


HOSTILE: dict[str, Callable[[Path], Any]] = {
    "another method": edit(lambda h: h.update(method="multinomial")),
    "no number of regions": edit(lambda h: h.pop("n_regions")),
    "no regions": edit(lambda h: h.update(n_regions=0)),
    "fewer than no regions": edit(lambda h: h.update(n_regions=-2)),
    "regions that are true": edit(lambda h: h.update(n_regions=True)),
    "regions as text": edit(lambda h: h.update(n_regions="2")),
    "regions that are no whole number": edit(lambda h: h.update(n_regions=2.0)),
    "regions that do not divide the support": edit(lambda h: h.update(n_regions=3)),
    "regions that do not divide the columns": edit(lambda h: h.update(n_features=101)),
    "another number of regions": edit(lambda h: h.update(n_regions=4)),
    "one class": edit(lambda h: h["classes"].update(labels=["ham & eggs"])),
    "no alpha": edit(lambda h: h.pop("alpha")),
    "no smoothing": edit(lambda h: h.update(alpha=0)),
    "smoothing without end": edit(lambda h: h.update(alpha=float("inf"))),
    "smoothing that is no number": edit(lambda h: h.update(alpha="1")),
    "normalize as a number": edit(lambda h: h.update(normalize=1)),
    "no normalize": edit(lambda h: h.pop("normalize")),
    "no parameters": edit(lambda h: h["arrays"].pop("theta")),
    "no table": edit(lambda h: h["arrays"].pop("log_probabilities")),
    "both kinds of tables": add("region_log_probabilities", np.zeros((2, 2, 2))),
    "weights of naive Bayes": add("present", np.zeros((2, 2))),
    "more parameters": swap("theta", np.zeros(4)),
    "parameters that are no numbers": swap("theta", np.array([0.0, np.nan, 1.0])),
    "whole parameters": swap("theta", np.zeros(3, np.int64)),
    "a table of other words": swap("log_probabilities", np.zeros((2, 3))),
    "a table of other classes": swap("log_probabilities", np.zeros((3, 2))),
    "a flat table": swap("log_probabilities", np.zeros(4)),
    "impossible words": swap("log_probabilities", np.full((2, 2), -np.inf)),
    "other words in a region": swap("support", np.array([3, 20, 53, 71])),
    "a region of other words": swap("support", np.array([3, 50, 53, 100])),
    "a support out of order": swap("support", np.array([20, 3, 70, 53])),
    "a support before the first column": swap("support", np.array([-1, 20, 49, 70])),
    "a support that is no numbers": swap("support", np.array([3.0, 20.0, 53.0, 70.0])),
    "no documents": swap("class_count", np.zeros(2)),
}


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE)
def test_hostile_hybrids_are_refused(attack: Callable[[Path], Any], tmp_path: Path) -> None:
    save_model(HYBRID, {}, tmp_path / "m")
    attack(tmp_path / "m")
    with pytest.raises(StoreError):
        read_model(tmp_path / "m")


def test_a_table_that_is_not_all_there_is_refused(tmp_path: Path) -> None:
    save_model(HYBRID, {}, tmp_path / "m")
    (chunk,) = (tmp_path / "m").glob("arrays-*/log_probabilities/c/0/0")
    chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(StoreError, match="damaged"):
        read_model(tmp_path / "m")
    chunk.unlink()
    with pytest.raises(StoreError):
        read_model(tmp_path / "m")
