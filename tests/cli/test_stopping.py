"""Runs that are stopped through their folder, ingests that go on by themselves, and schedulers named by their file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import nfs_dask as nfs
from nfs_dask.engine.driver import STOP, Command, driving
from nfs_dask.engine.run_events import EventLog
from nfs_dask.engine.run_status import read_status
from nfs_dask.files.folder import Folder
from tests.cli.test_long_runs import CODE, CORPUS, assert_same_model, in_mid_pass, wait_for
from tests.helpers.commands import as_json, run
from tests.helpers.slow_blocks import slow_environment


def test_a_run_is_stopped_through_its_folder(tmp_path: Path) -> None:
    nfs.ingest(CORPUS, tmp_path / "mail.zarr", block_bytes=8000)
    words = ["fit", "mail.zarr", "m", "-k", "20", "--no-cache", "--run", "run"]
    with subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        cwd=tmp_path,
        env=slow_environment(tmp_path / "slow", 0.3),
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        in_mid_pass(tmp_path / "run", blocks=1)
        assert as_json("stop", tmp_path / "run")["state"] == "interrupted"
        _, err = driver.communicate(timeout=60)
    assert driver.returncode == 143 and "--resume run" in err
    assert not (tmp_path / "run" / STOP).exists()
    assert "is interrupted" in run("stop", tmp_path / "run").stdout, "there is nothing left to stop"
    run("fit", tmp_path / "mail.zarr", tmp_path / "m", "-k", 20, "--no-cache", "--resume", tmp_path / "run")
    run("fit", tmp_path / "mail.zarr", tmp_path / "whole", "-k", 20, "--no-cache")
    assert_same_model(nfs.load_model(tmp_path / "m"), nfs.load_model(tmp_path / "whole"))


def test_a_program_of_python_is_not_stopped(tmp_path: Path) -> None:
    with driving(str(tmp_path)):
        assert "interrupt it there" in run("stop", tmp_path, code=3).stderr
        assert not (tmp_path / STOP).exists()
    assert "is no run folder" in run("stop", tmp_path / "nowhere", code=3).stderr


def test_an_old_wish_to_stop_is_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / STOP).touch()
    with driving(str(tmp_path), Command("nfs-dask fit --resume run", "/")):
        assert not (tmp_path / STOP).exists()
    assert read_status(tmp_path).state == "finished"


def test_a_submitted_run_is_seen_before_a_worker_has_begun(tmp_path: Path) -> None:
    facts = {"scheduler": "tls://10.0.0.1:8786", "task": "nfs-driver-1", "resume": "nfs-dask fit a b --resume run"}
    EventLog(Folder(str(tmp_path))).write("submitted", facts)
    status = as_json("status", tmp_path)
    assert (status["state"], status["driver"], status["resume"]) == ("starting", None, facts["resume"])
    shown = run("status", tmp_path).stdout
    assert "to tls://10.0.0.1:8786" in shown and f"stop         nfs-dask stop {tmp_path}" in shown


@pytest.mark.parametrize("content", [None, "{}", "[]", "no JSON"])
def test_a_file_that_names_no_scheduler_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    refused = run("doctor", "--scheduler", file, code=2).stderr
    assert "is not a file that dask scheduler --scheduler-file has written" in " ".join(refused.split())


def test_the_address_in_a_scheduler_file_is_looked_at_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": "tcp://10.0.0.1:8786"}))
    assert "tcp://10.0.0.1:8786 is not encrypted" in run("doctor", "--scheduler", file, code=2).stderr


@pytest.mark.slow
def test_a_detached_ingest_goes_on_by_itself(tmp_path: Path) -> None:
    rows = [f"word{i % 97} word{i % 89} tea,{'yes' if i % 3 else 'no'}" for i in range(200_000)]
    (tmp_path / "mail.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    words = ["ingest", "mail.csv", "mail.zarr", "--label-column", "label", "--workers", "2", "--run", "ingesting"]
    begun = subprocess.run(
        [sys.executable, "-c", CODE, *words, "--detach", "--json"], cwd=tmp_path, capture_output=True, check=True
    )
    told = json.loads(begun.stdout)
    assert psutil.pid_exists(told["pid"])
    deadline = time.monotonic() + 200
    labels = set()
    while (status := as_json("status", tmp_path / "ingesting"))["state"] in ("starting", "running"):
        labels.add((status["work"] or {}).get("label"))
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert status["state"] == "finished" and labels - {None}, "its work was seen"
    assert nfs.open_dataset(tmp_path / "mail.zarr").n_rows == 200_000
    assert "--run ingesting" in status["resume"], "the same command goes on"
    wait_for(lambda: '"rows": 200000' in (tmp_path / "ingesting" / "driver.log").read_text())


def test_a_detached_ingest_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mail.csv").write_text("text,label\ntea,yes\n")
    assert "--run RUN" in run("ingest", tmp_path / "mail.csv", tmp_path / "x", "--detach", code=2).stderr
