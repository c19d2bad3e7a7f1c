"""The generated cases of the benchmarks, and the places they are written to.

    python benchmarks/cases.py tweets --data DIR      write one case: a store, and .npz blocks for the peers
    python benchmarks/cases.py dense --data DIR       the dense one: an AnnData store

Documents have about 25 words. Six of ten come from a Zipf head of 200,000 words, the others are spread evenly over the
whole vocabulary, so that most features are rare: the shape of word pairs of tweets. Every block depends on the seed and
its number alone.

The dense case is like measured expression: 2 million rows of 1,000 float32, 8 GB, of classes that differ a little in
each feature. Of ten features two are rounded to tenths, so that values tie; two are cut off at 0, which half of the
first class and fewer of the others fall below; and two drift along the rows.

References: sizes as of TWITTER with word bigrams in NFS Experiment 2, Table 2.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nfs_dask import ingest
from nfs_dask.arrays.block import Array, Block
from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.sources.source import Facts, Sizes, Source

HEAD = 200_000
ROWS = 100_000  # of a block


class Case(Source):
    """Generated documents in two classes."""

    def __init__(self, n_rows: int, n_features: int, words: float = 26.0, seed: int = 7) -> None:
        self.words, self.seed = words, seed
        self._facts = Facts(
            n_rows,
            n_features,
            -(-n_rows // ROWS),
            kind="count",
            classes=np.array(["negative", "positive"]),
            trusted=True,
            fingerprint=f"{n_rows}-{n_features}-{words}-{seed}",
        )
        entries = int(1.1 * words * ROWS)
        self._sizes = Sizes(entries * 5 + ROWS * 12, entries, 0)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            yield self.block(number)

    def block(self, number: int) -> Block:
        rng = np.random.default_rng([self.seed, number])
        n = min(ROWS, self.n_rows - number * ROWS)
        rows = np.repeat(np.arange(n), rng.poisson(self.words, n))
        head = rng.random(len(rows)) < 0.6
        words = rng.integers(self.n_features, size=len(rows))
        words[head] = np.exp(rng.random(np.count_nonzero(head)) * np.log(min(HEAD, self.n_features))) - 1
        pairs, counts = np.unique(rows * self.n_features + words, return_counts=True)
        return Block(
            indptr=np.searchsorted(pairs, np.arange(n + 1) * self.n_features).astype(np.int64),
            indices=(pairs % self.n_features).astype(np.int32),
            data=counts.astype(np.uint8),
            codes=rng.integers(2, size=n, dtype=np.int32),
            n_features=self.n_features,
            first_row=number * ROWS,
            number=number,
        )


CASES = {
    "small": Case(100_000, 200_000),
    "tweets": Case(1_600_000, 12_080_000),
    "tweets-x10": Case(16_000_000, 12_080_000),
    "wide": Case(4_000_000, 100_000_000, words=25.5),
    "wide-x10": Case(40_000_000, 1_000_000_000, words=25.5),
}


def store(name: str, data: Path) -> Dataset:
    """The case as a store of ours, written when it is not there yet. Nothing kept is used."""
    return open_dataset(store_of(CASES[name], data / f"{name}.zarr"), reuse=False)


def store_of(case: Case, path: Path) -> Path:
    """Where a store of a case is, which is written when it is not there yet."""
    if not path.exists():
        ingest(case, path)
    return path


def npz(name: str, data: Path) -> list[Path]:
    """The same blocks as uncompressed .npz files, the fastest thing numpy reads."""
    case, folder = CASES[name], data / f"{name}.npz"
    paths = [folder / f"{number:05d}.npz" for number in range(case.n_blocks)]
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        if not path.exists():
            b = case.block(number)
            np.savez(path, indptr=b.indptr.astype(np.int32), indices=b.indices, data=b.data, y=b.codes)
    return paths


@dataclass(frozen=True)
class DenseCase:
    """An AnnData Zarr store of float32, uncompressed, written chunk by chunk."""

    n_rows: int = 2_000_000
    n_features: int = 1_000
    n_classes: int = 2
    chunk_rows: int = 1_000
    seed: int = 7

    def codes(self) -> Array:
        return np.random.default_rng(self.seed).integers(self.n_classes, size=self.n_rows, dtype=np.int8)

    def rows(self, number: int, codes: Array) -> Array:
        """The rows of one chunk, whose classes are given."""
        rng = np.random.default_rng([self.seed, number])
        values = rng.standard_normal((len(codes), self.n_features), dtype=np.float32)
        kind = np.arange(self.n_features) % 10
        shift = np.linspace(0, 0.3, self.n_features, dtype=np.float32)
        values += shift * codes[:, None]
        values[:, kind < 2] = np.round(values[:, kind < 2], 1)
        values[:, (kind == 2) | (kind == 3)] = np.maximum(values[:, (kind == 2) | (kind == 3)], 0)
        values[:, (kind == 4) | (kind == 5)] += np.float32(number * self.chunk_rows / self.n_rows)
        return values

    def write(self, path: Path) -> None:
        import anndata
        import pandas as pd
        import zarr

        warnings.simplefilter("ignore")  # about what may change in other versions of Zarr
        codes = self.codes()
        labels = pd.Categorical.from_codes(codes, [f"class {c}" for c in range(self.n_classes)])
        obs = pd.DataFrame({"label": labels}, index=np.arange(self.n_rows).astype(str))
        names = pd.DataFrame(index=[f"gene{j}" for j in range(self.n_features)])
        with anndata.settings.override(zarr_write_format=3):
            anndata.AnnData(obs=obs, var=names).write_zarr(path)
        X = zarr.open_group(path, mode="r+", use_consolidated=False).create_array(
            "X",
            shape=(self.n_rows, self.n_features),
            dtype="float32",
            chunks=(self.chunk_rows, self.n_features),
            compressors=None,
            attributes={"encoding-type": "array", "encoding-version": "0.2.0"},
            overwrite=True,
        )
        for number, first in enumerate(range(0, self.n_rows, self.chunk_rows)):
            part = codes[first : first + self.chunk_rows]
            X[first : first + len(part)] = self.rows(number, part)
        zarr.consolidate_metadata(path)


DENSE = {
    "dense": DenseCase(),
    "dense-small": DenseCase(n_rows=100_000, n_features=200),
    "dense-5": DenseCase(n_classes=5),
}


def dense(name: str, data: Path) -> Dataset:
    """The dense case as an AnnData store, written when it is not there yet. Nothing kept is used."""
    path = data / f"{name}.zarr"
    if not path.exists():
        DENSE[name].write(path)
    return open_dataset(path, labels="label", reuse=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=[*CASES, *DENSE])
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    options = parser.parse_args()
    if options.case in DENSE:
        print(dense(options.case, options.data))
        raise SystemExit
    print(store(options.case, options.data))
    print(len(npz(options.case, options.data)), ".npz blocks")
