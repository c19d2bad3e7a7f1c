"""The events of a run: appended, bounded, without secrets, and read whatever the last line is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfs_dask.engine.run_events import EVENTS, MOST_NBYTES, MOST_REMOTE_NBYTES, EventLog, read_events, thinned
from nfs_dask.files.folder import Folder


@pytest.fixture(params=["disk", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    """On a disk, and behind a URL where nothing can be appended to."""
    if request.param == "disk":
        yield Folder(str(tmp_path / "run"))
        return
    place = Folder(f"memory://{tmp_path.name}-{time.monotonic_ns()}")
    yield place
    place.remove()


def test_events_come_back_in_order_also_of_another_writer(folder: Folder) -> None:
    before = time.time()
    for number in range(3):
        EventLog(folder).write("progress", {"done": number, "pass": "counts"})
    events = read_events(folder)
    assert [(event["event"], event["done"], event["pass"]) for event in events] == [
        ("progress", number, "counts") for number in range(3)
    ]
    assert all(before - 0.01 <= event["time"] <= time.time() + 0.01 for event in events)


def test_a_torn_line_is_passed_over_and_closed(folder: Folder) -> None:
    EventLog(folder).write("started", {})
    whole = folder.read(EVENTS)
    folder.write(EVENTS, whole + b'{"time": 1.0, "event": "prog')
    assert [event["event"] for event in read_events(folder)] == ["started"]
    EventLog(folder).write("resumed", {})
    assert [event["event"] for event in read_events(folder)] == ["started", "resumed"]


def test_lines_that_are_no_events_are_passed_over(folder: Folder) -> None:
    folder.write(
        EVENTS, b'[1]\n{"event": 3, "time": 1}\n{"event": "x"}\n\xff\n{"event": "y", "time": 2}\n' + b"[" * 9000
    )
    assert [event["event"] for event in read_events(folder)] == ["y"]


def test_no_events_are_no_error(folder: Folder) -> None:
    assert read_events(folder) == []


def test_secrets_do_not_get_in(folder: Folder) -> None:
    EventLog(folder).write("failed", {"message": "s3://key:hunter2@bucket: no", "more": ["https://x/y?sig=hunter2"]})
    assert b"hunter2" not in folder.read(EVENTS)
    assert read_events(folder)[0]["message"] == "s3://***@bucket: no"


def test_the_file_is_bounded(folder: Folder) -> None:
    most = MOST_REMOTE_NBYTES if folder.remote else MOST_NBYTES
    log = EventLog(folder)
    log.write("started", {})
    for number in range(600):
        log.write("progress", {"label": "x" * 3000, "done": number})
    assert most // 4 < folder.size(EVENTS) <= most
    events = read_events(folder)
    assert events[0]["event"] == "started", "the rare ones outlive the frequent"
    done = [event["done"] for event in events[1:]]
    assert done == list(range(done[0], 600)), "of the frequent ones, the newest are kept"


def test_a_text_without_end_is_cut(folder: Folder) -> None:
    EventLog(folder).write("failed", {"message": "x" * 10**6})
    assert folder.size(EVENTS) < 10_000


def test_thinning_drops_old_events_of_any_kind_last() -> None:
    lines = [json.dumps({"time": i, "event": "workings" if i % 2 else "progress"}).encode() for i in range(10)]
    kept = thinned(b"\n".join(lines), 3 * (len(lines[1]) + 1))
    assert [json.loads(line)["time"] for line in kept.splitlines()] == [5, 7, 9]
