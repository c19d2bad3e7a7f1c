"""``events.jsonl`` of a run folder: what has happened in it, one JSON object a line, written by its driver alone.

    {"time": 1767225600.0, "event": "pass_planned", "pass": "class_counts", "blocks": 1024, ...}

On a disk a line is appended in one write; a store that cannot append gets the file anew, which is bounded. A last line
that a power cut has torn is passed over by readers, and closed by the next writer. Nothing in it is a secret: texts are
redacted on their way.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.redaction import redacted

EVENTS = "events.jsonl"
MOST_NBYTES = 1 << 20  # of the file; beyond it, it is thinned out
MOST_REMOTE_NBYTES = 1 << 18  # where each event writes all of it
MOST_TEXT = 4000  # characters of a text in an event
FREQUENT = ("progress", "checkpoint")  # what goes first when there are too many


class EventLog:
    """The events of a run, for the one process that writes them. Safe to use from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._most = MOST_REMOTE_NBYTES if folder.remote else MOST_NBYTES
        self._content: bytes | None = None  # of a remote file

    def write(self, event: str, facts: Mapping[str, Any]) -> None:
        """Add an event. Facts are JSON values."""
        line = json.dumps(_bounded({"time": round(time.time(), 3), "event": event, **facts})).encode() + b"\n"
        with self._lock:
            if self._folder.remote:
                self._rewrite(line)
            else:
                self._append(line)

    def _append(self, line: bytes) -> None:
        path = Path(self._folder.path(EVENTS))
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            os.write(file, (b"\n" if torn else b"") + line)
        finally:
            os.close(file)
        if size + len(line) > self._most:
            self._folder.scratch.write(EVENTS, thinned(path.read_bytes(), self._most // 2))

    def _rewrite(self, line: bytes) -> None:
        if self._content is None:
            self._content = _read(self._folder)
        if self._content and not self._content.endswith(b"\n"):
            self._content += b"\n"
        self._content += line
        if len(self._content) > self._most:
            self._content = thinned(self._content, self._most // 2)
        self._folder.scratch.write(EVENTS, self._content)


def read_events(folder: Folder) -> list[dict[str, Any]]:
    """All events that are kept, the oldest first; lines that are none are passed over."""
    return [event for line in _read(folder).split(b"\n") if (event := _event(line)) is not None]


def thinned(content: bytes, nbytes: int) -> bytes:
    """At most so many of the bytes: without the older of the frequent events, and if need be of all events."""
    found = [(line, event["event"] in FREQUENT) for line in content.split(b"\n") if (event := _event(line)) is not None]
    kept: list[int] = []
    for i in sorted(range(len(found)), key=lambda i: (found[i][1], -i)):  # rare ones first, and the newest of them
        nbytes -= len(found[i][0]) + 1
        if nbytes < 0:
            break
        kept.append(i)
    return b"".join(found[i][0] + b"\n" for i in sorted(kept))


def _read(folder: Folder) -> bytes:
    if not folder.exists(EVENTS):
        return b""
    try:
        return folder.read(EVENTS, 0, 4 * MOST_NBYTES)
    except StoreError:  # it has gone, or is no file
        return b""


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        return None
    return found if isinstance(found.get("time"), (int, float)) else None


def _bounded(value: Any) -> Any:
    """Without secrets, and without texts that never end."""
    if isinstance(value, str):
        return redacted(value[: 2 * MOST_TEXT])[:MOST_TEXT]
    if isinstance(value, Mapping):
        return {name: _bounded(inner) for name, inner in value.items()}
    return [_bounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value
