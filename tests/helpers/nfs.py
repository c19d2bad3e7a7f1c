"""The command line as a program of these tests: ``python -m tests.helpers.nfs``, of one command, or of several.

Where a word is ``THEN`` a command ends and the next one begins, in the same process, which has loaded what they need.
"""

from __future__ import annotations

import itertools
import sys
from contextlib import suppress

from nfs_dask.cli.main import cli

THEN = "+++"
END = "\x1e"  # printed behind each of several commands

if __name__ == "__main__":
    if THEN not in sys.argv:
        cli(prog_name="nfs-dask")
    for between, words in itertools.groupby(sys.argv[1:], THEN.__eq__):
        if not between:
            with suppress(SystemExit):
                cli(list(words), prog_name="nfs-dask")
            print(END, flush=True)
