"""Secrets in the arguments and the environment of real commands: what they start, write and leave behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from tests.helpers.canaries import ENVIRONMENT, PASSWORD, found_in, found_in_environment, found_in_files
from tests.helpers.commands import as_json
from tests.helpers.slow_blocks import slow_environment
from tests.helpers.web_server import signed_server, web_server

CODE = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"
ROWS = [f"{'win cash now' if i % 2 else 'notes agenda'} word{i % 7},{'spam' if i % 2 else 'ham'}" for i in range(60)]


@dataclass
class Watch:
    """Looks at the arguments and the environments of processes, again and again.

    Those that our commands start, and what these start, are known by the folder for temporary files that they inherit.
    """

    secret: str
    folder: str
    typed: set[int] = field(default_factory=set)  # whose arguments we have written
    seen: set[int] = field(default_factory=set)  # all on the machine that had the secret in theirs
    ours: set[str] = field(default_factory=set)  # arguments of what our commands started, and of what that started
    given_away: dict[str, list[str]] = field(default_factory=dict)  # by whose arguments or environment
    over: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        while not self.over.wait(0.05):
            for pid in psutil.pids():
                with suppress(psutil.Error):  # it has ended
                    self._look_at(psutil.Process(pid))

    def _look_at(self, process: psutil.Process) -> None:
        words, variables = arguments(process), process.environ()
        if self.secret in words:
            self.seen.add(process.pid)
        if variables.get("TMPDIR") == self.folder:
            self.ours.add(words)
            found = found_in_environment(variables)
            self.given_away |= {f"{name} of {words}": hits for name, hits in found.items()}
        elif self.secret not in words:
            return
        if process.pid not in self.typed and (hits := found_in(words)) and self._are_its_own(process, words):
            self.given_away[words] = hits

    def _are_its_own(self, process: psutil.Process, words: str) -> bool:
        """Until a process that was started begins, it shows what started it; ours are known when they have begun."""
        time.sleep(0.1)
        return arguments(process) == words and process.pid not in self.typed


def arguments(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


@contextmanager
def watched(secret: str, folder: str) -> Iterator[Watch]:
    watch = Watch(secret, folder)
    thread = threading.Thread(target=watch.look)
    thread.start()
    try:
        yield watch
    finally:
        watch.over.set()
        thread.join()


@dataclass
class Commands:
    """Runs commands in a folder, and keeps what they say."""

    work: Path
    environment: dict[str, str]
    watch: Watch
    shown: str = ""

    def __call__(self, *words: Any, code: int = 0) -> None:
        command = [sys.executable, "-c", CODE, *map(str, words)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=self.work, env=self.environment, **pipes) as process:
            self.watch.typed.add(process.pid)
            out, err = process.communicate(timeout=240)
        assert process.returncode == code, err
        self.shown += out + err


@pytest.fixture
def environment(tmp_path: Path, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Keys that are secrets, and folders that will be searched, for this process and all that it starts."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    folders = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    return slow_environment(tmp_path / "slow", 0.05) | folders


@pytest.fixture
def bucket(environment: dict[str, str]) -> str:
    import boto3

    name = f"bucket-{uuid.uuid4()}"
    boto3.client("s3").create_bucket(Bucket=name)
    return name


def contents(bucket: str) -> dict[str, bytes]:
    import boto3

    s3 = boto3.resource("s3")
    return {one.key: one.get()["Body"].read() for one in s3.Bucket(bucket).objects.all()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_that_commands_start_or_write_has_a_secret(
    tmp_path: Path, environment: dict[str, str], bucket: str
) -> None:
    secret = f"{PASSWORD}-{uuid.uuid4().hex[:8]}"
    work, web = tmp_path / "work", tmp_path / "web"
    corpus = GeneratedCorpus(2000, 300, 3, words_per_document=10, block_rows=100)
    nfs.ingest(corpus, web / "mail.zarr", block_bytes=8000)
    (web / "mail.csv").write_text("\n".join(["text,label", *ROWS]))

    with web_server(web, "me", secret) as (host, asked), watched(secret, environment["TMPDIR"]) as watch:
        run = Commands(work, environment, watch)
        place, s3 = f"http://me:{secret}@{host}", f"s3://{bucket}"
        csv, store = f"{place}/mail.csv", f"{place}/mail.zarr"
        run("ingest", csv, f"{s3}/mail.zarr", "--label-column", "label")
        run("fit", f"{s3}/mail.zarr", f"{s3}/spam.model", "-k", 3, "--run", f"{s3}/run", "--report", f"{s3}/page.html")
        run("status", f"{s3}/run")
        run("evaluate", f"{s3}/spam.model", csv, "--label-column", "label")
        run("predict", f"{s3}/spam.model", csv, "--workers", 1, "--out", "out.csv")
        run("fit", store, "topics.model", "-k", 20, "--no-cache", "--workers", 2, "--run", "run", "--detach")
        run("fit", store, "none.model", "--label-column", "none", "--run", "failed", "--detach")
        run("fit", f"{place}/none.zarr", "none.model", code=3)
        run("plan", store, "--workers", 1, "--scheduler", f"tcp://127.0.0.1:9?token={secret}", code=2)
        for folder, state in {"run": "finished", "failed": "failed"}.items():
            ended(work / folder, state)
        run("status", "run")
        run("status", "failed", "--json")
        run("info", "topics.model")

    assert asked and any("mail.zarr" in path for path in asked), "it was read with the password"
    assert "***" in run.shown
    assert any("fit http://***@" in words for words in watch.ours), "the detached driver was seen"
    assert any("spawn_main" in words for words in watch.ours), "and workers"
    assert_nothing_found(run, tmp_path)
    left = contents(bucket)
    assert len(left) > 20 and {name: hits for name, one in left.items() if (hits := found_in(one))} == {}
    assert (work / "run" / "driver.log").exists() and (work / "topics.model").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_signatures_of_urls_are_in_nothing_that_is_left(tmp_path: Path, environment: dict[str, str]) -> None:
    """Documents, one of them bad, are ingested, evaluated and refused: in this process, by workers and detached."""
    secret = f"{PASSWORD}-{uuid.uuid4().hex[:8]}"
    work, web = tmp_path / "work", tmp_path / "web"
    web.mkdir()
    (web / "mail.csv").write_bytes("\n".join(["text,label", *ROWS]).encode() + b"\n\xff\xfe broken,spam\n")
    query = f"X-Amz-Date=20261119T000000Z&X-Amz-Signature={secret}"
    with signed_server(web, query) as (host, asked), watched(secret, environment["TMPDIR"]) as watch:
        run = Commands(work, environment, watch)
        csv, wrong = f"http://{host}/mail.csv?{query}", f"http://{host}/mail.csv?X-Amz-Signature={secret}0"
        bad = ("--label-column", "label", "--on-error", "skip")
        run("ingest", csv, "mail.zarr", *bad, "--rejects", "rejects.csv")
        run("ingest", csv, "none.zarr", "--label-column", "label", code=3)
        run("ingest", wrong, "none.zarr", *bad, code=3)
        run("ingest", csv, "workers.zarr", *bad, "--workers", 2, "--run", "ingesting", "--detach")
        ended(work / "ingesting", "finished")
        run("fit", "mail.zarr", "spam.model", "-k", 3, "--run", "run", "--report", "page.html")
        run("evaluate", "spam.model", csv, *bad)
        run("predict", "spam.model", csv, "--on-error", "skip", "--out", "out.csv")
        run("status", "ingesting", "--json")
        run("info", "workers.zarr")
    assert any("bytes=" in request for request in asked), "it was read in parts"
    assert any("ingest http://" in words and "?***" in words for words in watch.ours), "the detached ingest was seen"
    assert (work / "rejects.csv").exists() and "mail.csv?***" in run.shown
    assert_nothing_found(run, tmp_path)


def assert_nothing_found(run: Commands, folder: Path) -> None:
    """Neither in what was said, nor below a folder, nor in arguments and environments of what the commands started."""
    assert found_in(run.shown) == []
    assert run.watch.given_away == {}
    assert run.watch.typed & run.watch.seen, "the look at arguments sees what was typed"
    assert found_in_files(folder) == {}


def ended(folder: Path, state: str) -> None:
    deadline = time.monotonic() + 180
    while (status := as_json("status", folder))["state"] != state:
        assert time.monotonic() < deadline and status["state"] in ("starting", "running"), status
        time.sleep(0.3)
