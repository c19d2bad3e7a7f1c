"""Finished states at rest: one Zarr group per panel, and a manifest written last that makes them count.

states.json      totals, bounds, checksums of the arrays of each panel, what the statistic and the data were
panel-00000/     the arrays of one panel

Zarr's own checksums find bytes that changed; ours also find one array in the place of another.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import google_crc32c
import numpy as np
import zarr
from zarr.buffer.cpu import Buffer
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import MemoryStore

from nfs_dask.arrays.block import Array, smallest_integer
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import sealed, unsealed
from nfs_dask.statistics.panels import HeldPanels, Panels, widened
from nfs_dask.statistics.statistic import State

MANIFEST = "states.json"
FORMAT = 1
CHUNK_NBYTES = 2 << 20
MAX_MANIFEST = 64 << 20
MAX_METADATA = 1 << 20
MOST_SHRUNK = 512  # lz4 packs at most 255 bytes into one: an array that claims more than this is not there

_NAME = re.compile(r"[a-z][a-z0-9_]*")
# What libraries raise over damaged bytes and hostile metadata.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    FileNotFoundError,
    LookupError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)


def _name_of(folder: Folder) -> str:
    return folder.location.rstrip("/").rpartition("/")[2]


def _panel(folder: Folder, panel: int) -> Folder:
    return folder / f"panel-{panel:05d}"


Checksums = dict[str, int]  # of arrays, by their names


def write_panel(folder: Folder, panel: int, arrays: dict[str, Array]) -> Checksums:
    """Store the arrays of one panel. Writing it again writes the same bytes, and takes none away in between."""
    return write_arrays(_panel(folder, panel), arrays)


def write_arrays(folder: Folder, arrays: dict[str, Array]) -> Checksums:
    """Store arrays as a Zarr group, each in one object.

    Zarr only encodes: how objects appear, near and far, is the folder's business.
    """
    objects: dict[str, Any] = {}
    checksums = {}
    group = zarr.create_group(MemoryStore(objects))
    for name, whole in arrays.items():
        array = _narrow(whole)
        width = max(1, CHUNK_NBYTES // (array.itemsize * math.prod(array.shape[:-1])))
        inner = (*array.shape[:-1], min(width, array.shape[-1]))
        shard = (*array.shape[:-1], -(-array.shape[-1] // inner[-1]) * inner[-1])
        stored = group.create_array(
            name,
            shape=array.shape,
            dtype=array.dtype,
            chunks=inner,
            shards=shard,  # a panel's array is one object
            compressors=(BloscCodec(cname="lz4", clevel=1, shuffle=_shuffled(array)), Crc32cCodec()),
            config={"write_empty_chunks": True},
        )
        stored[...] = array
        checksums[name] = checksum(array)
        _move(objects, folder)
    _move(objects, folder)
    return checksums


def _shuffled(array: Array) -> Literal["shuffle", "bitshuffle"]:
    """How numbers are laid out before they are packed: of bytes, most of which are small, like bits lie together."""
    return "bitshuffle" if array.itemsize == 1 else "shuffle"


def checksum(array: Array) -> int:
    """CRC-32C of the values, their type and their shape."""
    values = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    words = f"{values.dtype.str} {list(array.shape)}".encode()
    return int(google_crc32c.extend(google_crc32c.value(words), values.reshape(-1).view(np.uint8)))


def _move(objects: dict[str, Any], folder: Folder) -> None:
    while objects:
        name, content = objects.popitem()
        folder.write(name, content.as_buffer_like())


def _narrow(array: Array) -> Array:
    """Whole numbers in the smallest type that holds them: most counts are small, and a tenth of the bytes will do."""
    if array.dtype != np.int64 or array.size == 0:
        return array
    return array.astype(smallest_integer(int(array.min()), int(array.max())))


def write_manifest(
    folder: Folder, totals: dict[str, Array], bounds: tuple[int, ...], panels: list[Checksums], facts: dict[str, Any]
) -> None:
    """Make the panels count. ``panels`` is what `write_panel` said of each."""
    manifest = {
        "format": FORMAT,
        "name": _name_of(folder),
        "bounds": list(bounds),
        "panels": panels,
        "totals": {name: {"dtype": a.dtype.str, "values": a.tolist()} for name, a in totals.items()},
        "facts": facts,
    }
    folder.write(MANIFEST, sealed(manifest))


def write_state(folder: Folder, state: State, n_features: int, facts: dict[str, Any]) -> None:
    """Store a state that is in memory, as one panel."""
    checksums = write_panel(folder, 0, state.arrays)
    write_manifest(folder, state.totals, (0, n_features), [checksums], facts)


class StoredPanels(Panels):
    """A finished state in a store; arrays are read when asked for."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        if folder.size(MANIFEST) > MAX_MANIFEST:
            raise StoreError(f"{folder.path(MANIFEST)} is larger than any state needs; it is not one of ours")
        try:
            manifest = unsealed(folder.read(MANIFEST))
            if manifest["format"] != FORMAT:
                raise StoreError(
                    f"{folder.location} holds states of format {manifest['format']}, this version reads {FORMAT}"
                )
            if manifest.get("name", _name_of(folder)) != _name_of(folder):
                raise ValueError(f"it is that of {manifest['name']}")
            self.facts: dict[str, Any] = dict(manifest["facts"])
            self.bounds = _bounds(manifest["bounds"])
            self._names = _names(manifest["panels"], len(self.bounds) - 1)
            self.totals = {str(name): _total(t["dtype"], t["values"]) for name, t in manifest["totals"].items()}
        except StoreError:
            raise
        except _DAMAGE as error:
            raise StoreError(f"{folder.path(MANIFEST)} is damaged ({error}); delete it and run again") from error

    @classmethod
    def find(cls, folder: Folder) -> StoredPanels | None:
        """What is stored there, if it was finished."""
        return cls(folder) if folder.exists(MANIFEST) else None

    def arrays(self, panel: int) -> dict[str, Array]:
        return {name: widened(array) for name, array in self.stored(panel).items()}

    def stored(self, panel: int) -> dict[str, Array]:
        width = self.bounds[panel + 1] - self.bounds[panel]
        folder = _panel(self.folder, panel)
        return {name: read_stored(folder / name, width, check) for name, check in self._names[panel].items()}

    def verify(self) -> None:
        """Read all of it."""
        for panel in range(len(self)):
            self.stored(panel)

    def state(self) -> State:
        return HeldPanels(self).state()


def _bounds(values: Any) -> tuple[int, ...]:
    increasing = all(type(v) is int for v in values) and all(a < b for a, b in zip(values, values[1:], strict=False))
    if len(values) < 2 or values[0] != 0 or not increasing:
        raise ValueError("the bounds of its panels are not increasing whole numbers from 0")
    return tuple(values)


def _names(panels: Any, n_panels: int) -> list[dict[str, int | None]]:
    """Names and checksums of the arrays of each panel; states from before there were checksums have none."""
    if len(panels) != n_panels or not all(_NAME.fullmatch(name) for names in panels for name in names):
        raise ValueError("the names of its arrays are not ours")
    return [dict(names) if isinstance(names, dict) else dict.fromkeys(names) for names in panels]


def _total(dtype: Any, values: Any) -> Array:
    if np.dtype(dtype).kind not in "iuf":
        raise ValueError(f"a total of type {dtype}")
    return np.array(values, np.dtype(dtype))


def read_array(folder: Folder, width: int, check: int | None = None) -> Array:
    """One array that `write_arrays` wrote, whose last axis is ``width`` long; whole numbers as int64."""
    return widened(read_stored(folder, width, check))


def read_stored(folder: Folder, width: int, check: int | None = None) -> Array:
    """As `read_array`, in the type it is stored in."""
    try:
        objects: dict[str, Any] = {"zarr.json": Buffer.from_bytes(folder.read("zarr.json", 0, MAX_METADATA))}
        array = zarr.open_array(MemoryStore(objects), mode="r")
        shard = array.shards or array.chunks
        one_object = all(n <= most for n, most in zip(array.shape, shard, strict=True))
        if not one_object or array.shape[-1] != width or array.dtype.kind not in "iuf":
            raise ValueError("its shape or type are not what the manifest says")
        name = "c" + "/0" * array.ndim
        # Read here, because Zarr takes a missing object for zeros; chunks are padded and hardly grow by packing.
        objects[name] = Buffer.from_bytes(folder.read(name, 0, 2 * array.nbytes + MAX_METADATA))
        if array.nbytes > MOST_SHRUNK * len(objects[name]):
            raise ValueError(f"it cannot hold an array of shape {array.shape}")
        stored = np.asarray(array[...])
        if check is not None and checksum(stored) != check:
            raise ValueError("it is not the array that was written")
    except StoreError:
        raise
    except _DAMAGE as error:
        raise StoreError(
            f"{folder.location} is damaged ({error}); delete what it belongs to, and make it again"
        ) from error
    return stored
