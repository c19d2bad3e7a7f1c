"""Finished states at rest: one Zarr group per panel, and a manifest written last that makes them count.

states.json      totals, bounds, arrays of each panel, what the statistic and the data were
panel-00000/     the arrays of one panel
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

from nfs_dask.block import Array, smallest_integer
from nfs_dask.errors import StoreError
from nfs_dask.statistics.base import State
from nfs_dask.statistics.panels import Panels
from nfs_dask.storage.folder import Folder

MANIFEST = "states.json"
FORMAT = 1
CHUNK_NBYTES = 2 << 20
MAX_MANIFEST = 64 << 20


def _zarr_store(folder: Folder) -> Any:
    if folder.remote:
        return zarr.storage.FsspecStore.from_url(folder.location)
    return zarr.storage.LocalStore(folder.location)


def _panel(folder: Folder, panel: int) -> Folder:
    return folder / f"panel-{panel:05d}"


def write_panel(folder: Folder, panel: int, arrays: dict[str, Array]) -> None:
    """Store the arrays of one panel. Writing it again writes the same bytes."""
    group = zarr.open_group(_zarr_store(_panel(folder, panel)), mode="w")
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
            compressors=BloscCodec(cname="lz4", clevel=1, shuffle="shuffle"),
            config={"write_empty_chunks": True},
        )
        stored[...] = array


def _narrow(array: Array) -> Array:
    """Whole numbers in the smallest type that holds them: most counts are small, and a tenth of the bytes will do."""
    if array.dtype != np.int64 or array.size == 0:
        return array
    return array.astype(smallest_integer(int(array.min()), int(array.max())))


def write_manifest(
    folder: Folder, totals: dict[str, Array], bounds: tuple[int, ...], panels: list[list[str]], facts: dict[str, Any]
) -> None:
    """Make the panels count. ``panels`` names the arrays that each of them has."""
    manifest = {
        "format": FORMAT,
        "bounds": list(bounds),
        "panels": panels,
        "totals": {name: {"dtype": a.dtype.str, "values": a.tolist()} for name, a in totals.items()},
        "facts": facts,
    }
    folder.write(MANIFEST, json.dumps(manifest).encode())


def write_state(folder: Folder, state: State, n_features: int, facts: dict[str, Any]) -> None:
    """Store a state that is in memory, as one panel."""
    write_panel(folder, 0, state.arrays)
    write_manifest(folder, state.totals, (0, n_features), [list(state.arrays)], facts)


class StoredPanels(Panels):
    """A finished state in a store; arrays are read when asked for."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        if folder.size(MANIFEST) > MAX_MANIFEST:
            raise StoreError(f"{folder.path(MANIFEST)} is larger than any state needs; it is not one of ours")
        manifest = json.loads(folder.read(MANIFEST))
        if manifest.get("format") != FORMAT:
            raise StoreError(
                f"{folder.location} holds states of format {manifest.get('format')}, this version reads {FORMAT}"
            )
        self.facts: dict[str, Any] = manifest["facts"]
        self.bounds = tuple(manifest["bounds"])
        self._names: list[list[str]] = manifest["panels"]
        self.totals = {name: np.array(t["values"], np.dtype(t["dtype"])) for name, t in manifest["totals"].items()}

    @classmethod
    def find(cls, folder: Folder) -> StoredPanels | None:
        """What is stored there, if it was finished."""
        return cls(folder) if folder.exists(MANIFEST) else None

    def arrays(self, panel: int) -> dict[str, Array]:
        group = zarr.open_group(_zarr_store(_panel(self.folder, panel)), mode="r")
        width = self.bounds[panel + 1] - self.bounds[panel]
        found = {}
        for name in self._names[panel]:
            array = group[name]
            if not isinstance(array, zarr.Array) or array.shape[-1] != width or array.dtype.kind not in "iuf":
                raise StoreError(f"{self.folder.location}: array {name} of panel {panel} is not what its manifest says")
            stored = np.asarray(array[...])
            found[name] = stored if stored.dtype.kind == "f" else stored.astype(np.int64)
        return found
