"""Somebody with gene expression in an AnnData: l1 centers, saved, and loaded elsewhere."""

from __future__ import annotations

import re

import anndata
import numpy as np
import pandas as pd
import pytest

from tests.helpers.journeys import Journey
from tests.helpers.places import data_file

pytestmark = pytest.mark.slow

FIT = """
import anndata

import nfs_dask as nfs

cells = anndata.read_h5ad("cells.h5ad")
model = nfs.SparseCentroid(k=3, metric="manhattan").fit(cells, cells.obs["tissue"])
print(model.get_feature_names_out().tolist())
print(model.centers_.round(2))
print(f"right about {model.score(cells, cells.obs['tissue']):.1%}; no other genes are better: {model.certified_}")
model.save("tissue.model")
"""
LOAD = """
import anndata

import nfs_dask as nfs

cells = anndata.read_h5ad("cells.h5ad")
model = nfs.load_model("tissue.model")
said = model.predict(cells)
print(f"right about {(said == cells.obs['tissue']).mean():.1%}")
"""


def generated() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Two tissues that differ in three genes of 2,000, with outliers."""
    rng = np.random.default_rng(0)
    tissue = np.array(["brain", "liver"])[np.arange(120) % 2]
    X = rng.standard_t(1.5, (120, 2000))
    X[tissue == "liver", :3] += 3
    return X, tissue, [f"gene {i}" for i in range(2000)]


def real() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The Singh prostate set."""
    with np.load(data_file("singh.npz")) as arrays:
        return arrays["X"], arrays["classes"][arrays["y"]], [str(name) for name in arrays["feature_names"]]


@pytest.mark.parametrize("data", [generated, real])
def test_genes_in_which_tissues_differ(journey: Journey, data) -> None:
    X, tissue, genes = data()
    obs = pd.DataFrame({"tissue": tissue}, index=[f"cell {i}" for i in range(len(tissue))])
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=genes)).write_h5ad(journey.folder / "cells.h5ad")
    shown = journey.python(FIT)
    medians = np.array([np.median(X[tissue == one], axis=0) for one in np.unique(tissue)])
    alone = np.abs(X - np.median(X, axis=0)).sum(axis=0)  # distances to one center, and to those of the classes
    apart = sum(np.abs(X[tissue == one] - medians[c]).sum(axis=0) for c, one in enumerate(np.unique(tissue)))
    best = np.sort(np.argsort(-(alone - apart), kind="stable")[:3])
    assert str([genes[i] for i in best]) in shown
    assert "no other genes are better: True" in shown
    (right,) = re.findall(r"right about [\d.]+%", shown)
    assert right in journey.python(LOAD)

    stored = journey.shell("nfs-dask fit cells.h5ad again.model --label-column tissue --method l1 -k 3")
    assert all(genes[i] in stored for i in best) and journey.fits(stored)
    assert journey.minutes < 2
