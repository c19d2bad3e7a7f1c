"""What describes a store or a model carries a checksum, which cannot be dropped from what came with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.errors import StoreError
from nfs_dask.files.sealed import SEAL, sealed, unsealed, with_seal


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    X, y = np.array([[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]), ["tea", "tea", "coffee", "coffee"]
    nfs.ingest(X, tmp_path / "store", labels=y)
    nfs.SparseMultinomialNB(2).fit(X, y).save(tmp_path / "model")
    return tmp_path


def test_what_was_changed_is_refused() -> None:
    content = json.loads(sealed({"a": 1, "b": [2.5, "c"]}))
    assert unsealed(json.dumps(content, indent=1).encode()) == {"a": 1, "b": [2.5, "c"]}
    for change in ({"a": 2}, {"b": [2.5, "d"]}, {SEAL: "00000000"}):
        with pytest.raises(ValueError, match="checksum"):
            unsealed(json.dumps(content | change).encode())


def renamed(found: dict[str, Any]) -> dict[str, Any]:
    return {SEAL.upper() if key == SEAL else key: value for key, value in found.items()} | {"n_features": 7}


def test_a_model_that_lost_its_checksum_is_damaged(saved: Path) -> None:
    place = saved / "model" / "model.json"
    place.write_text(json.dumps(renamed(json.loads(place.read_text()))))
    with pytest.raises(StoreError, match="its checksum is missing"):
        nfs.load_model(saved / "model")


def test_a_store_that_lost_its_checksum_is_damaged(saved: Path) -> None:
    place = saved / "store" / "zarr.json"
    root = json.loads(place.read_text())
    root["attributes"]["nfs_dask"] = renamed(root["attributes"]["nfs_dask"])
    place.write_text(json.dumps(root))
    with pytest.raises(StoreError, match="its checksum is missing"):
        nfs.open_dataset(saved / "store")


def test_what_is_from_before_there_were_checksums_is_read() -> None:
    old = {"a": 1}
    assert unsealed(json.dumps(old).encode(), since="checksums") == old
    assert with_seal(old).keys() == {"a", SEAL}
