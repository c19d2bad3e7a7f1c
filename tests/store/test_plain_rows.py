"""Chunks of plain numbers are read as Zarr reads them, whatever part of them is asked for, and damage is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store.foreign_arrays import ForeignArray
from nfs_dask.store.hierarchy import Hierarchy

VALUES = np.random.default_rng(5).integers(-99, 99, (57, 6))


def stored(place: Path, version: int = 3, dtype: str = "<f4", chunks: tuple[int, ...] = (10, 6), **more: Any) -> Any:
    values = VALUES.astype(dtype) if len(chunks) == 2 else VALUES.astype(dtype).ravel()
    group = zarr.open_group(place, mode="w", zarr_format=version)
    options = {"compressors": None, **more}
    group.create_array("X", shape=values.shape, chunks=chunks, dtype=values.dtype, **options)[:] = values
    return values, ForeignArray(Hierarchy.open(Folder.of(place)), "X")


PLAIN = [
    {},
    {"version": 2},
    {"dtype": "int8"},
    {"dtype": "<f8", "chunks": (57, 6)},
    {"dtype": "<i2", "chunks": (64, 6)},
    {"chunks": (100,)},
    {"version": 2, "chunks": (7,), "dtype": "<i8"},
    {"chunk_key_encoding": {"name": "v2", "separator": "."}},
]
OTHERS = [
    {"serializer": zarr.codecs.BytesCodec(endian="big")},
    {"version": 2, "dtype": ">f8"},
    {"chunks": (10, 3)},
    {"chunks": (10, 8)},
    {"compressors": "auto"},
    {"version": 2, "compressors": "auto"},
    {"version": 2, "order": "F"},
    {"shards": (20, 6)},
    {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
]


@pytest.mark.parametrize(("options", "plain"), [*((o, True) for o in PLAIN), *((o, False) for o in OTHERS)])
def test_any_rows_are_those_that_zarr_reads(
    options: dict[str, Any], plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, array = stored(tmp_path, **options)
    if plain:
        monkeypatch.delattr(ForeignArray, "_unpacked")
    else:
        monkeypatch.setattr(Folder, "read_into", None)
    for start, stop in [(0, len(values)), (0, 0), (3, 4), (9, 11), (10, 20), (5, 42), (len(values) - 1, len(values))]:
        found = array.read(start, stop)
        assert found.dtype == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, values[start:stop])


def test_a_chunk_that_was_left_out_is_its_fill_value(tmp_path: Path) -> None:
    values, array = stored(tmp_path, fill_value=7)
    (tmp_path / "X/c/2/0").unlink()
    values[20:30] = 7
    np.testing.assert_array_equal(array.read(15, 45), values[15:45])


@pytest.mark.parametrize("change", [b"".join, lambda parts: parts[0] + b"12345678"])
def test_a_chunk_of_another_size_is_damaged(change: Any, tmp_path: Path) -> None:
    _, array = stored(tmp_path)
    chunk = tmp_path / "X/c/2/0"
    content = chunk.read_bytes()
    chunk.write_bytes(change([content[:-4]]))
    with pytest.raises(StoreError, match="c/2/0 is damaged"):
        array.read(15, 45)
    assert len(array.read(0, 20)) == 20


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    _, array = stored(tmp_path)
    (tmp_path / "X/c/2/0").unlink()
    os.mkfifo(tmp_path / "X/c/2/0")
    assert not Folder.of(tmp_path).read_into("X/c/2/0", 0, np.empty(240, np.uint8), 240)
    assert array.read(0, 20).shape == (20, 6)
