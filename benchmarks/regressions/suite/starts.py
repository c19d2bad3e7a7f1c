"""What a user waits for before anything is done."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nfs_dask as nfs

from .cases import counts

NFS = (sys.executable, "-c", "from nfs_dask.cli.main import cli; cli()")


class Import:
    """Of the package, and of what a fit takes from it."""

    def timeraw_import(self) -> str:
        return "import nfs_dask"

    def timeraw_import_an_estimator(self) -> str:
        return "from nfs_dask import SparseMultinomialNB"


class Commands:
    """Processes of their own, with compiled code from an earlier one."""

    timeout = 300

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(dir=Path.cwd())
        X, y = counts(rows=1_000, features=2_000)
        nfs.ingest(X, f"{folder}/mail.zarr", labels=y)
        return folder

    def setup(self, folder: str) -> None:
        self.time_fit(folder)

    def time_fit(self, folder: str) -> None:
        words = ("fit", f"{folder}/mail.zarr", f"{folder}/m{os.getpid()}", "-k", "20", "--no-cache", "--overwrite")
        subprocess.run([*NFS, *words], check=True, capture_output=True)
