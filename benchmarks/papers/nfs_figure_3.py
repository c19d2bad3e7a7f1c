"""Objective against k on gene expression: NFS Figure 3.

The RNA set of the paper (801 x 20,531, BRCA against the rest) is not to be had; these are other measured sets without
negative values, the largest class against the rest, and a generated one of that size for its seconds alone. The
objective is the log likelihood of the model, with no smoothing; "gained" is in per cent of what all features gain.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.datasets import genes, place
from benchmarks.papers.experiment import Missing, Settings, left_out, there
from benchmarks.papers.figures import panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask.solvers.naive_bayes.multinomial import count
from nfs_dask.solvers.naive_bayes.path_grid import solve_path

TITLE = "Objective against k on gene expression"
SETS = ("rna", "chowdary", "nakayama", "alon", "generated, 801 x 20,531")
SHARES = (0.01, 0.1, 0.5)
ENOUGH = 0.999


def rows_of(settings: Settings, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and which are of the largest class."""
    if name.startswith("generated"):
        rng = np.random.default_rng(settings.seed)
        return rng.gamma(0.5, 20, (801, 20_531)), rng.random(801) < 0.37
    if name == "rna":
        place(settings.data, name, "npz")
        raise Missing("a set of that name is not known")
    found = genes(settings.data, name)
    return found.X, found.y == np.bincount(found.y).argmax()


def one_set(settings: Settings, name: str) -> dict[str, Any]:
    X, largest = rows_of(settings, name)
    totals = np.stack([X[~largest].sum(axis=0), X[largest].sum(axis=0)])
    m = X.shape[1]
    wanted = (np.geomspace(2, m, 60), np.linspace(2, m, 100), [share * m for share in SHARES])
    ks = np.unique(np.concatenate(wanted).astype(int))
    counted = count(totals)
    start = time.perf_counter()
    path = solve_path(counted, ks)
    took = time.perf_counter() - start
    together = totals.sum(axis=0)
    together = together[together > 0]
    return {
        "n": X.shape[0],
        "m": m,
        "k": path.ks,
        "gain": path.value,
        "bound": path.bound,
        "without features": float(together @ np.log(together / together.sum())),
        "seconds": took,
    }


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(SETS, partial(one_set, settings))


def gained(found: dict[str, Any], share: float) -> float:
    """Of what all features gain, per cent, by a share of them."""
    return float(100 * np.interp(share * found["m"], found["k"], found["gain"]) / found["gain"][-1])


def enough(found: dict[str, Any]) -> int:
    """The least k that gains nearly all."""
    gain = np.array(found["gain"])
    return int(np.array(found["k"])[np.flatnonzero(gain >= ENOUGH * gain[-1])[0]])


def table(values: dict[str, Any]) -> str:
    head = ["set", *(f"gained by {100 * share:g} %" for share in SHARES), f"k that gains {100 * ENOUGH:g} %"]
    rows = []
    for name, found in there(values).items():
        shares = [f"{gained(found, share):.1f} %" for share in SHARES]
        gap = np.max(1 - np.array(found["gain"]) / found["bound"])
        rows.append([f"{name}, {found['n']} x {found['m']:,}", *shares, f"{enough(found):,}", f"{gap:.1e}"])
        rows[-1].append(f"{found['seconds']:.2f}, {len(found['k'])}")
    return markdown([*head, "largest gap", "seconds, of how many k"], rows) + "\n" + left_out(values)


def draw(values: dict[str, Any]) -> Any:
    measured = {name: found for name, found in there(values).items() if not name.startswith("generated")}
    figure, axes = panels(1, 2, width=4.0, height=3.0)
    for look, found in zip(styles(measured, marks=False).values(), measured.values(), strict=True):
        k, gain = np.array(found["k"]), np.array(found["gain"])
        axes[0, 0].plot(k / found["m"] * 100, 100 * gain / gain[-1], **look)
        axes[0, 1].plot(k, (found["without features"] + gain) / found["without features"], **look)
    axes[0, 0].set(xlabel="k, % of the features", ylabel="gained, % of what all features gain")
    axes[0, 1].set(xlabel="k", ylabel="objective, relative to no features", xscale="log")
    axes[0, 1].invert_yaxis()
    axes[0, 0].legend()
    return figure
