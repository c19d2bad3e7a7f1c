"""The sets of the papers, by path: texts as Parquet files, genes as NumPy archives; see `Missing` for those not there.

Texts have columns ``text``, ``label`` and ``split``; archives have ``X``, ``y`` and ``classes``. ``--data`` names their
folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Missing

# Sets of the papers that are not to be had, and what stands for them; the page says so at each number.
NOT_TO_BE_HAD = {
    "chin": "Chin et al. 2006 (118 x 22,215) is not to be had",
    "rna": "the RNA set of UCI (801 x 20,531) is not to be had",
    "twitter": "the 1.6 million tweets of Sentiment140 are not to be had",
}


@dataclass(frozen=True)
class Texts:
    """Documents and labels, and which of them train."""

    name: str
    texts: np.ndarray  # of str
    y: np.ndarray  # codes, from 0
    train: np.ndarray  # of bool: the published split, or the one that comes with the file
    classes: list[str]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Genes:
    """Measured expression, samples by genes."""

    name: str
    X: np.ndarray
    y: np.ndarray
    classes: list[str]


def place(folder: Path, name: str, ending: str) -> Path:
    file = folder / f"{name}.{ending}"
    if name in NOT_TO_BE_HAD or not file.exists():
        raise Missing(NOT_TO_BE_HAD.get(name, f"there is no {file.name} in the folder that --data names"))
    return file


def frame(folder: Path, name: str) -> Any:
    """All columns of a text set."""
    import pandas as pd

    return pd.read_parquet(place(folder, name, "parquet"))


def texts(folder: Path, name: str) -> Texts:
    import pyarrow.parquet as pq

    columns = frame(folder, name)
    classes = json.loads(pq.read_schema(place(folder, name, "parquet")).metadata[b"classes"])
    return Texts(
        name,
        columns["text"].to_numpy(dtype=object),
        columns["label"].to_numpy(dtype=np.int64),
        (columns["split"] == "train").to_numpy(),
        classes,
    )


def genes(folder: Path, name: str) -> Genes:
    with np.load(place(folder, name, "npz")) as file:
        return Genes(name, file["X"], file["y"].astype(np.int64), [str(one) for one in file["classes"]])
