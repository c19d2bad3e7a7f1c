"""The reference vectors: in NFS_DASK_GOLDEN, or in ../shared/golden beside the checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden"


@pytest.fixture(scope="session")
def golden():
    """Reads a reference file by name."""
    folder = Path(os.environ.get("NFS_DASK_GOLDEN", BESIDE))
    if not folder.is_dir():
        pytest.skip(f"no reference vectors in {folder}; set NFS_DASK_GOLDEN to their folder")

    def read(name):
        path = folder / name
        return dict(np.load(path)) if path.suffix == ".npz" else json.loads(path.read_text())["cases"]

    return read
