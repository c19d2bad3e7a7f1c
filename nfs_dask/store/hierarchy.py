"""The groups and arrays of a Zarr store, of version 2 or 3, told by their metadata alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import json_object
from nfs_dask.store.header import MODEL, ROOT
from nfs_dask.store.layout import Json

OURS = "give the folder or URL that nfs_dask.ingest wrote, or an AnnData Zarr store"


@dataclass(frozen=True, slots=True)
class ZarrNode:
    """A group or an array. ``array`` is an array's metadata document as its version of Zarr has it."""

    path: str
    attributes: Json
    array: Json | None

    @property
    def encoding(self) -> str:
        """AnnData's word for what this is; empty where it says nothing."""
        return str(self.attributes.get("encoding-type", ""))


@dataclass(frozen=True)
class Hierarchy:
    """Where metadata are read from: the root's collection of them if it has one, else each node's own object."""

    folder: Folder
    version: int
    root: Json
    listed: dict[str, Any] | None

    @classmethod
    def open(cls, folder: Folder) -> Hierarchy:
        """Look at the root. Anything but a Zarr group is refused, saying what it is."""
        if folder.exists(ROOT):
            root = json_object(folder, ROOT)
            if root.get("node_type") != "group":
                raise StoreError(f"{folder.location} is a Zarr array, not a group with X in it; {OURS}")
            listing = root.get("consolidated_metadata")
            listed = listing.get("metadata") if isinstance(listing, dict) else None
            return cls(folder, 3, root, listed if isinstance(listed, dict) else None)
        if folder.exists(".zgroup"):
            attributes = json_object(folder, ".zattrs") if folder.exists(".zattrs") else {}
            return cls(folder, 2, {"attributes": attributes}, None)
        raise _refusal(folder)

    def find(self, path: str) -> ZarrNode | None:
        """The node at a path; None where there is none."""
        return self._find_v3(path) if self.version == 3 else self._find_v2(path)

    def get(self, path: str) -> ZarrNode:
        node = self.find(path)
        if node is None:
            raise StoreError(f"{self.folder.path(path)} is missing; {OURS}")
        return node

    def array(self, path: str) -> Json:
        """Metadata of the array at a path."""
        document = self.get(path).array
        if document is None:
            raise StoreError(f"{self.folder.path(path)} is a group where an array must be; the store is damaged")
        return document

    def _find_v3(self, path: str) -> ZarrNode | None:
        if self.listed is not None:
            document = self.listed.get(path)
        else:
            name = f"{path}/zarr.json"
            document = json_object(self.folder, name) if self.folder.exists(name) else None
        if not isinstance(document, dict):
            return None
        attributes = document.get("attributes", {})
        is_array = document.get("node_type") == "array"
        return ZarrNode(path, attributes if isinstance(attributes, dict) else {}, document if is_array else None)

    def _find_v2(self, path: str) -> ZarrNode | None:
        is_array = self.folder.exists(f"{path}/.zarray")
        if not is_array and not self.folder.exists(f"{path}/.zgroup"):
            return None
        own = f"{path}/.zattrs"
        attributes = json_object(self.folder, own) if self.folder.exists(own) else {}
        return ZarrNode(path, attributes, json_object(self.folder, f"{path}/.zarray") if is_array else None)


def _refusal(folder: Folder) -> StoreError:
    where = folder.location
    if not folder.remote and os.path.isfile(where):
        return StoreError(f"{where} is a file, not a Zarr store; {OURS}")
    if folder.exists(MODEL):
        return StoreError(f"{where} holds a model, and no data; {OURS}")
    inside = folder.names()
    if inside:
        return StoreError(f"{where} is not a Zarr store: it holds {', '.join(inside[:3])} but no {ROOT}; {OURS}")
    if not folder.remote and os.path.isdir(where):
        return StoreError(f"{where} is an empty folder; {OURS}")
    return StoreError(f"{where} does not exist; {OURS}")
