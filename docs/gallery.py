"""Draw all pictures of `nfs_dask.plots`, on generated data, the same each time: ``python docs/gallery.py FOLDER``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nfs_dask as nfs

TOPICS = {
    "cinema": "film actor scene plot director screen comedy drama camera script",
    "kitchen": "salt oven butter recipe onion knife garlic sauce bake flour",
    "garden": "soil seed rose lawn spade compost prune bulb hedge tulip",
    "harbor": "ship tide anchor sail crew cargo dock harbor captain deck",
}
KS = [1, 2, 5, 10, 20, 40, 80, 160, "all"]


@cache
def letters(topics: tuple[str, ...]) -> Any:
    """Letters about some topics: their words, and as many that say next to nothing."""
    rng = np.random.default_rng(0)
    said = [word for topic in TOPICS for word in TOPICS[topic].split()]
    words = said + [f"word{i}" for i in range(240 - len(said))]
    y = rng.integers(len(topics), size=1200)
    often = np.tile(rng.gamma(0.4, 0.12, size=len(words)), (len(topics), 1)) * rng.lognormal(
        0, 0.25, (len(topics), 240)
    )
    for c, topic in enumerate(topics):
        own = [words.index(word) for word in TOPICS[topic].split()]
        often[c, own] += np.geomspace(0.2, 0.02, len(own))
    moods = rng.gamma(0.8, 1 / 0.8, size=(1200, len(words)))  # a letter repeats its words
    X = pd.DataFrame(rng.poisson(often[y] * moods), columns=words)
    labels = np.array(topics)[y]
    return X[:800], labels[:800], X[800:], labels[800:]


@cache
def genes() -> Any:
    """Samples of four tissues; in each of them some genes are active."""
    rng = np.random.default_rng(1)
    tissue = np.arange(96) % 4
    X = rng.normal(8, 1, size=(96, 400))
    for c in range(4):
        X[np.ix_(tissue == c, range(7 * c, 7 * c + 7))] += np.linspace(3, 1, 7) * rng.choice([-1, 1], size=7)
    names = [f"GENE{i}" for i in range(400)]
    return pd.DataFrame(X, columns=names), np.array(["brain", "heart", "kidney", "liver"])[tissue]


@cache
def path() -> Any:
    X, y, _, _ = letters(("cinema", "kitchen"))
    return nfs.path(X, "multinomial", y=y)


@cache
def table() -> Any:
    X, y, _, _ = letters(("cinema", "kitchen"))
    return nfs.cross_validate(X, y, method="multinomial", ks=KS, alphas=[0.1, 1, 10])


def draw_path() -> Any:
    return nfs.plots.PathDisplay.from_path(path(), path().choose("elbow"))


def draw_accuracy() -> Any:
    return nfs.plots.AccuracyDisplay.from_table(table(), choice=table().choose("1se"))


def draw_error() -> Any:
    return nfs.plots.ErrorDisplay.from_choice(path().choose("error", ks=KS), table(), alpha=1)


def draw_features() -> Any:
    X, y, _, _ = letters(tuple(TOPICS))
    return nfs.plots.FeaturesDisplay.from_estimator(nfs.SparseMultinomialNB(k=60).fit(X, y), n=6, against=2)


def draw_coverage() -> Any:
    X, y, Z, z = letters(("cinema", "kitchen"))
    display = None
    for k in (10, 80):
        model = nfs.SparseMultinomialNB(k=k).fit(X, y)
        ax = None if display is None else display.ax_
        display = nfs.plots.CoverageDisplay.from_estimator(model, Z, z, name=f"k = {k}", ax=ax)
    return display


def draw_reliability() -> Any:
    X, y, Z, z = letters(("cinema", "kitchen"))
    return nfs.plots.ReliabilityDisplay.from_estimator(nfs.SparseMultinomialNB(k="all").fit(X, y), Z, z)


def draw_confusion() -> Any:
    X, y, Z, z = letters(tuple(TOPICS))
    return nfs.plots.ConfusionDisplay.from_estimator(nfs.SparseMultinomialNB(k=60).fit(X, y), Z, z)


def draw_centers() -> Any:
    model = nfs.SparseCentroid(k=28, metric="mahalanobis").fit(*genes())
    return nfs.plots.CentersDisplay.from_estimator(model, standardized=True)


PICTURES: dict[str, Callable[[], Any]] = {
    "path": draw_path,
    "accuracy": draw_accuracy,
    "error": draw_error,
    "features": draw_features,
    "coverage": draw_coverage,
    "reliability": draw_reliability,
    "confusion": draw_confusion,
    "centers": draw_centers,
}


def draw(folder: Path, only: Iterable[str] = tuple(PICTURES), dpi: int = 120) -> list[Path]:
    """Write a picture for each of some names, and return their files."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.use("Agg")
        import matplotlib.pyplot as plt

        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for name in only:
            display = PICTURES[name]()
            files.append(folder / f"{name}.png")
            # Without a note of who drew it, equal pictures are equal files.
            display.figure_.savefig(files[-1], dpi=dpi, metadata={"Software": None})
            plt.close(display.figure_)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(PICTURES), default=list(PICTURES))
    parser.add_argument("--dpi", type=int, default=120)
    options = parser.parse_args()
    draw(options.folder, options.only, options.dpi)


if __name__ == "__main__":
    main()
