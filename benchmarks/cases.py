"""The generated cases of the benchmarks, and the places they are written to.

    python benchmarks/cases.py tweets --data DIR      write one case: a store, and .npz blocks for the peers

Documents have about 25 words. Six of ten come from a Zipf head of 200,000 words, the others are spread evenly over the
whole vocabulary, so that most features are rare: the shape of word pairs of tweets. Every block depends on the seed and
its number alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nfs_dask import ingest
from nfs_dask.block import Array, Block, Kind
from nfs_dask.dataset import Dataset, open_dataset

HEAD = 200_000
ROWS = 100_000  # of a block


@dataclass(frozen=True)
class Case:
    """A `Source` of generated documents in two classes."""

    n_rows: int
    n_features: int
    words: float = 26.0
    seed: int = 7

    nnz: int | None = None
    kind: Kind | None = "count"
    weighted: bool = False
    in_memory: bool = False
    trusted: bool = True
    read_nbytes: int = 0
    import_nbytes: int = 0

    @property
    def classes(self) -> Array:
        return np.array(["negative", "positive"])

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // ROWS)

    @property
    def block_entries(self) -> int:
        return int(1.1 * self.words * ROWS)

    @property
    def block_nbytes(self) -> int:
        return self.block_entries * 5 + ROWS * 12

    @property
    def fingerprint(self) -> str:
        return f"{self.n_rows}-{self.n_features}-{self.words}-{self.seed}"

    def names(self, columns: Array) -> list[str] | None:
        return None

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
}


def store(name: str, data: Path) -> Dataset:
    """The case as a store of ours, written when it is not there yet. Nothing kept is used."""
    path = data / f"{name}.zarr"
    if not path.exists():
        ingest(CASES[name], path)
    return open_dataset(path, reuse=False)


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    options = parser.parse_args()
    print(store(options.case, options.data))
    print(len(npz(options.case, options.data)), ".npz blocks")
