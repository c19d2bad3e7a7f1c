"""Progress: silent at first, then a bar for whoever watches, or a line now and then for a log."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
import threading
import time

import pytest

from nfs_dask.progress import LOG_EVERY, PATIENCE, Progress


class Clock:
    """Time that passes only when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, logger="nfs_dask")
    return caplog


def test_short_work_shows_nothing(clock, log, capfd):
    with Progress(10, "counting", clock=clock) as progress:
        for _ in range(10):
            progress.advance(nbytes=100)
            clock.now += PATIENCE / 11
    assert progress.done == 10
    assert not log.records
    assert capfd.readouterr() == ("", "")


def test_off_a_terminal_a_line_at_most_every_half_minute(clock, log):
    with Progress(100, "counting", clock=clock) as progress:
        for _ in range(100):
            clock.now += 1
            progress.advance()
    # The first after the patience is over, one for each half minute since, and the last state.
    assert len(log.records) == 1 + int((100 - PATIENCE) // LOG_EVERY) + 1
    assert log.messages[0] == "counting: 2 of 100 blocks, 2 s so far, about 98 s left"
    assert log.messages[-1] == "counting: 100 of 100 blocks, 100 s so far"


def test_work_within_other_work_shows_nothing_of_its_own(clock, log):
    with Progress(2, "counting", clock=clock) as outer:
        with Progress(2, "reading", clock=clock) as inner:
            clock.now += 3
            inner.advance()
        outer.advance()
    with Progress(1, "writing", clock=clock) as later:
        clock.now += 3
        later.advance()
    assert {line.partition(":")[0] for line in log.messages} == {"counting", "writing"}


def test_a_line_comes_even_when_nothing_finishes(clock, log):
    with Progress(2, "waiting", clock=clock):
        clock.now += PATIENCE + 1
        deadline = time.monotonic() + 10
        while not log.records and time.monotonic() < deadline:
            time.sleep(0.01)
    assert log.messages[0] == "waiting: 0 of 2 blocks, 3 s so far"


def test_speed_and_estimate(clock):
    progress = Progress(40, "reading", "files", clock=clock)
    assert progress.seconds_left is None
    clock.now += 10
    progress.advance(10, nbytes=20 << 20)
    assert progress.seconds_left == pytest.approx(30)
    assert str(progress) == "reading: 10 of 40 files, 20.0 MiB at 2.0 MiB/s, 10 s so far, about 30 s left"


def test_an_unknown_total_gives_no_estimate(clock):
    progress = Progress(None, "reading", "rows", clock=clock)
    clock.now += 10
    progress.advance(12_345)
    assert progress.seconds_left is None
    assert str(progress) == "reading: 12,345 rows, 10 s so far"


def test_threads_lose_no_count(clock):
    def work():
        for _ in range(2000):
            progress.advance(2, nbytes=3)

    with Progress(16_000, "counting", clock=clock) as progress:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (progress.done, progress.nbytes) == (16_000, 24_000)


def test_an_error_passes_through_and_ends_the_display(clock, log):
    def work():
        with Progress(2, "counting", clock=clock) as progress:
            clock.now += 3
            progress.advance()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert log.messages[-1].startswith("counting: 1 of 2 blocks")
    assert not [t for t in threading.enumerate() if t.name == "nfs-dask-progress"]


BAR = """
import time
from nfs_dask import progress
progress.PATIENCE = 0.1
with progress.Progress(3, "counting [words]") as p:
    for _ in range(3):
        time.sleep(0.3)
        p.advance(nbytes=1 << 20)
print("result")
"""


def run_on_terminal(code):
    """Standard output, and what a real terminal as standard error received."""
    leader, follower = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = b""
        while chunk := read_or_end(leader):
            shown += chunk
        out = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0, shown.decode()
    return out.decode(), shown.decode()


def read_or_end(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux reports the closed other end of a terminal as an input/output error
        return b""


def test_on_a_terminal_a_bar_on_standard_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    out, shown = run_on_terminal(BAR)
    assert out == "result\n"
    assert "counting [words]" in shown
    assert "━" in shown
    assert "3 of 3 blocks" in shown
    assert "100%" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "the cursor is shown again"


def test_into_a_pipe_lines_and_no_bar():
    result = subprocess.run([sys.executable, "-c", BAR], capture_output=True, text=True, check=True)
    assert result.stdout == "result\n" and "\x1b" not in result.stderr
    assert all(line.startswith("counting [words]: ") for line in result.stderr.splitlines())


def test_a_bar_ends_full_even_if_reports_come_late(clock):
    with Progress(3, "counting", clock=clock) as progress:
        progress.advance(2)
    assert progress.done == 3


def test_what_failed_is_not_called_finished(clock):
    progress = Progress(3, "counting", clock=clock)
    with pytest.raises(ZeroDivisionError), progress:
        progress.advance(2)
        raise ZeroDivisionError
    assert progress.done == 2


@pytest.mark.parametrize("room", [200, 60, 40, 20])
def test_the_time_left_stays_where_there_is_little_room(clock, room):
    progress = Progress(4_000, "reading", "files", clock=clock)
    clock.now += 10
    progress.advance(1_000, nbytes=20 << 20)
    text = progress.brief(room)
    assert text.endswith("about 30 s left") and len(text) <= room
    assert progress.brief(200) == str(progress).removeprefix("reading: ")


SCRIPT = """
import time
from nfs_dask import progress
progress.PATIENCE = 0.05
with progress.Progress(3, "counting") as p:
    for _ in range(3):
        time.sleep(0.1)
        p.advance()
"""


@pytest.mark.parametrize(("switch", "lines"), [(None, 2), ("off", 0), ("false", 0), ("on", 2)])
def test_a_plain_script_has_lines_unless_they_are_turned_off(switch, lines):
    env = {name: value for name, value in os.environ.items() if name != "NFS_DASK_PROGRESS"}
    env |= {} if switch is None else {"NFS_DASK_PROGRESS": switch}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "" and len(done.stderr.splitlines()) == lines
    assert all(line.startswith("counting: ") for line in done.stderr.splitlines())


def test_whoever_sets_up_logging_has_the_lines_there():
    code = (
        "import logging, sys; logging.basicConfig(level='INFO', stream=sys.stdout, format='log %(message)s')" + SCRIPT
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "" and done.stdout.splitlines()[-1].startswith("log counting: 3 of 3 blocks")
