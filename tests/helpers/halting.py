"""``nfs-dask`` with an ingest that counts in small pieces, and halts after some: a program to be killed.

The environment says after how many tasks to halt (HALT_AFTER), for how long before each that follows (HALT_SECONDS),
and where to note, before the store is written, when each finished file of the ingest was written (NOTE).
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from nfs_dask.cli.main import cli
from nfs_dask.documents import lines as cutting
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion import text_ingest as texts
from nfs_dask.store.publish import ingest_folder

PIECE_NBYTES = 1500


def finished(folder: Path) -> dict[str, int]:
    """When each manifest of counted pieces, and each of their segments, was written."""
    manifests = [path for path in folder.glob("*-*.json") if not path.name.startswith(".")]
    segments = [folder / name for path in manifests for name in json.loads(path.read_text())["segments"]]
    return {path.name: path.stat().st_mtime_ns for path in [*manifests, *segments]}


def main() -> None:
    count, write = texts.count_texts, texts.write_store
    after, seconds = int(os.environ.get("HALT_AFTER", 10**9)), float(os.environ.get("HALT_SECONDS", 3600))

    def count_and_halt(task: Any) -> Any:
        if sum(name.endswith(".json") for name in Folder(task.folder).names()) > after:  # one is not of a task
            time.sleep(seconds)
        return count(task)

    def note_and_write(source: Any, location: str, **options: Any) -> Any:
        if note := os.environ.get("NOTE"):
            Path(note).write_text(json.dumps(finished(Path(ingest_folder(Folder.of(location)).location))))
        return write(source, location, **options)

    cutting.PIECE_NBYTES = PIECE_NBYTES
    texts.count_texts, texts.write_store = count_and_halt, note_and_write
    cli()


if __name__ == "__main__":
    main()
