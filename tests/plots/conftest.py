"""What tests of displays share: small data with awkward names, and a watch over pyplot and the settings."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import nfs_dask as nfs

AWKWARD = ["$x$", "a_b$c$", r"$\frac$", "<script>", "_hidden", "two\nlines", "ß Ж λ", "n" * 200, "50 %", "{}^", "\\$"]


def documents(n_classes: int, n_features: int = 40, n_rows: int = 240, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = rng.poisson(rng.gamma(0.5, size=(n_classes, n_features))[y])
    names = [*AWKWARD, *(f"word{i}" for i in range(n_features - len(AWKWARD)))]
    return pd.DataFrame(X, columns=names), np.array([f"${c}$ class_{c:02}" for c in range(n_classes)])[y]


@pytest.fixture(scope="session")
def two() -> Any:
    return documents(2)


@pytest.fixture(scope="session")
def three() -> Any:
    return documents(3)


@pytest.fixture(scope="session")
def table(two: Any) -> Any:
    return nfs.cross_validate(*two, method="multinomial", ks=[1, 3, 10, 40], alphas=[0.5, 1.0])


@pytest.fixture(autouse=True)
def settings_stay() -> Any:
    """No display changes the settings of matplotlib, or leaves a figure open that was not asked for."""
    plt.close("all")
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def ax() -> Any:
    """The middle of a grid of somebody else, who does not use pyplot; it is drawn when the test has ended."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5), layout="constrained")
    grid = figure.subplots(1, 3)
    yield grid[1]
    figure.draw_without_rendering()
    assert plt.get_fignums() == []
    others = [one for one in grid if one is not grid[1]]
    assert all(not one.lines and not one.patches and not one.images for one in others)
