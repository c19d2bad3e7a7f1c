"""The command line as a program of these tests: ``python -m tests.helpers.nfs``."""

from __future__ import annotations

from nfs_dask.cli.main import cli

if __name__ == "__main__":
    cli(prog_name="nfs-dask")
