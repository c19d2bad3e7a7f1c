"""Where tests find reference vectors, which come with them, and real data, which do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
_DATA = Path(os.environ.get("NFS_DASK_DATA", ROOT.parent / "shared" / "data"))


def data_file(name: str) -> Path:
    """A file of real data, in NFS_DASK_DATA or in ../shared/data beside the checkout, or the test is skipped."""
    file = _DATA / name
    if not file.exists():
        pytest.skip(f"{file} is not here; set NFS_DASK_DATA to its folder")
    return file
