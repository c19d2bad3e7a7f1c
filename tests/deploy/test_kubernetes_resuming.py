"""deploy/begin-or-resume.sh, with a command in the place of nfs-dask that ends as it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "begin-or-resume.sh"

# `status` knows a run where there is a file. Anything else is written down, and ends with the next of the exit codes.
COMMAND = """#!/bin/sh
if [ "$1" = status ]; then [ -e "$2" ]; exit; fi
echo "$@" >> called
touch run
read -r code < codes
sed -i 1d codes
case $code in
  kill) kill -9 $$ ;;
  wait) trap 'exit 143' TERM; touch waiting; while :; do sleep 0.05; done ;;
  *) exit "$code" ;;
esac
"""

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts the script, in a folder where its command ends with these codes, one after another."""
    (tmp_path / "nfs-dask").write_text(COMMAND)
    (tmp_path / "nfs-dask").chmod(0o755)

    begun: list[subprocess.Popen[str]] = []

    def start(*codes: object, **variables: str) -> subprocess.Popen[str]:
        (tmp_path / "codes").write_text("".join(f"{code}\n" for code in codes))
        process = subprocess.Popen(
            ["sh", SCRIPT, "run", "nfs-dask", "fit", "my store", "model"],
            cwd=tmp_path,
            env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PAUSE": "0"} | variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def called(folder: Path) -> list[str]:
    return (folder / "called").read_text().splitlines()


BEGUN = "fit my store model --run run"
RESUMED = "fit my store model --resume run --overwrite"


def test_a_run_is_begun_and_one_that_is_there_is_gone_on_with(tmp_path: Path, begin: Begin) -> None:
    assert begin(0).wait(10) == 0
    assert begin(0).wait(10) == 0
    assert called(tmp_path) == [BEGUN, RESUMED]


def test_what_fails_is_begun_again_and_says_so(tmp_path: Path, begin: Begin) -> None:
    process = begin("kill", 4, 0)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 0
    assert called(tmp_path) == [BEGUN, RESUMED, RESUMED]
    assert "exit code 137; attempt 2 of 6 begins in 0 s" in said
    assert "exit code 4; attempt 3 of 6 begins in 0 s" in said


def test_attempts_come_to_an_end_with_the_last_exit_code(tmp_path: Path, begin: Begin) -> None:
    assert begin(1, 3, 4, 0, ATTEMPTS="3").wait(10) == 4
    assert len(called(tmp_path)) == 3


def test_wrong_usage_is_not_tried_again(tmp_path: Path, begin: Begin) -> None:
    assert begin(2, 0).wait(10) == 2
    assert called(tmp_path) == [BEGUN]


def test_sigterm_reaches_the_command_and_is_the_end(tmp_path: Path, begin: Begin) -> None:
    process = begin("wait", 0)
    deadline = time.monotonic() + 10
    while not (tmp_path / "waiting").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert called(tmp_path) == [BEGUN]


def test_sigterm_between_two_attempts_is_the_end(tmp_path: Path, begin: Begin) -> None:
    process = begin(4, 0, PAUSE="60")
    assert process.stderr is not None
    assert "begins in 60 s" in process.stderr.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert called(tmp_path) == [BEGUN]
