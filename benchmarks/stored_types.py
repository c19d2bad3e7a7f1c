"""What the types of a store cost in bytes: counts and columns as others can compute with them, beside narrower ones.

    python benchmarks/stored_types.py --rows 400000

Chunks are those of a store: 2^20 values, shuffled by bytes and compressed by lz4. The texts are the generated tweets of
`cases.py`; the genes, 2,000 of 20,000 in a cell, have counts that are mostly 1 and reach hundreds.
"""

from __future__ import annotations

import argparse

import numpy as np
from cases import Case

from nfs_dask.arrays.block import Array
from nfs_dask.store.layout import Layout
from nfs_dask.store.shards import compressed


def tweets(n_rows: int) -> dict[str, Array]:
    case = Case(n_rows=n_rows, n_features=12_080_000)
    blocks = list(case.blocks(0, case.n_blocks))
    return joined([(block.data, block.indices, block.indptr) for block in blocks])


def genes(n_rows: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    level = rng.lognormal(0, 2, 20_000)
    parts = []
    for _ in range(n_rows // 100):
        dense = rng.poisson(rng.gamma(0.3, 1 / 0.3, (100, 20_000)) * level * 0.05)
        rows, columns = np.nonzero(dense)
        parts.append((dense[rows, columns], columns, np.searchsorted(rows, np.arange(101))))
    return joined(parts)


def joined(parts: list[tuple[Array, Array, Array]]) -> dict[str, Array]:
    data, indices = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    lengths = np.concatenate([np.diff(part[2]) for part in parts])
    return {"data": data, "indices": indices, "indptr": np.concatenate([[0], np.cumsum(lengths)])}


def nbytes(values: Array, dtype: str) -> int:
    chunk = Layout().chunk
    values = values.astype(dtype)
    padded = np.zeros(-(-len(values) // chunk) * chunk, dtype)
    padded[: len(values)] = values
    return sum(len(compressed(padded[at : at + chunk])) for at in range(0, len(padded), chunk))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000, help="of the texts; a hundredth of it are cells")
    options = parser.parse_args()
    print("| data | entries | counts | columns | row pointers | all | beside the narrowest |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, arrays in (("texts", tweets(options.rows)), ("genes", genes(options.rows // 100))):
        narrow = np.min_scalar_type(int(arrays["data"].max())).name
        first = 0
        for types in ((narrow, "int32", "int32"), ("int32", "int32", "int32"), ("int64", "int64", "int64")):
            sizes = [nbytes(values, dtype) for values, dtype in zip(arrays.values(), types, strict=True)]
            first = first or sum(sizes)
            shown = " | ".join(f"{dtype}: {size / 1e6:.2f} MB" for dtype, size in zip(types, sizes, strict=True))
            more = f"{100 * (sum(sizes) / first - 1):+.1f} %"
            print(f"| {name} | {len(arrays['data']):,} | {shown} | {sum(sizes) / 1e6:.2f} MB | {more} |")


if __name__ == "__main__":
    main()
