"""What all tests share."""

from __future__ import annotations

import atexit
import gc
import itertools
import json
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests.helpers.clusters import TwoWorkers, environment_of_workers
from tests.helpers.places import GOLDEN

STARTED = time.monotonic()

# Each program that tests start would compile all modules it imports anew if none of them may keep what comes of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A deadline would measure the machine; compiled kernels make the first example slow anyway.
# Cases differ from run to run, and a change is judged by two whole runs, on the oldest and on the newest Python.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure(config: pytest.Config) -> None:
    """Make warnings that lines of these tests cause errors; what pyproject.toml excepts is said behind this."""
    names = "|".join(sorted(path.stem for path in Path(__file__).parent.rglob("*.py")))
    config.getini("filterwarnings").insert(1, rf"error:::(.*\.)?({names})$")


def pytest_collection_finish() -> None:
    """What is loaded by now stays until the end: the search for garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests there were, and how long they took; of processes, those that have ended count."""
    reports = itertools.chain.from_iterable(terminalreporter.stats.values())
    tests = {report.nodeid for report in reports if isinstance(report, pytest.TestReport)}
    used = sum(os.times()[:4])
    terminalreporter.write_sep("=", f"{len(tests)} tests in {time.monotonic() - STARTED:.0f} s, {used:.0f} s of CPU")


def pytest_unconfigure() -> None:
    """Leave out what extension modules print while Python ends: a page of nanobind's, which reads like a failure."""
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno()))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], AbstractContextManager[None]]:
    """While this lasts, no file of this process grows beyond so many bytes."""

    @contextmanager
    def limited(nbytes: int) -> Iterator[None]:
        # Python before 3.13.1 would keep what fits of the bytecode of a module that is imported meanwhile.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Any]:
    """Reads a file of reference vectors by name."""

    def read(name: str) -> Any:
        path = GOLDEN / name
        return dict(np.load(path)) if path.suffix == ".npz" else json.loads(path.read_text())["cases"]

    return read


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The end point of a server on loopback that speaks S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket; this process and those it starts find the server and their credentials."""
    import boto3
    import fsspec

    secrets = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "DEFAULT_REGION": "us-east-1"}
    for name, value in {"ENDPOINT_URL": s3_server, **secrets}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    file_system = fsspec.get_filesystem_class("s3")
    file_system.clear_instance_cache()
    bucket = f"bucket-{uuid.uuid4()}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    yield f"s3://{bucket}"
    file_system.clear_instance_cache()


@pytest.fixture(scope="session")
def shared_workers() -> Iterator[TwoWorkers]:
    """Of all tests that leave workers as they were."""
    workers = TwoWorkers("2GiB")
    yield workers
    workers.close()


@pytest.fixture
def cluster(shared_workers: TwoWorkers) -> Iterator[Any]:
    """A client of two worker processes, the default while the test lasts."""
    with shared_workers.client() as client:
        yield client


@pytest.fixture
def s3_cluster(cluster: Any, s3: str) -> Iterator[Any]:
    """The same, whose workers have the credentials of the bucket."""
    with environment_of_workers(cluster, {name: value for name, value in os.environ.items() if name[:4] == "AWS_"}):
        yield cluster


@pytest.fixture(scope="session")
def mortal_workers() -> Iterator[TwoWorkers]:
    """Of all modules that kill them."""
    workers = TwoWorkers("1GiB")
    yield workers
    workers.close()


@pytest.fixture
def mortal_cluster(mortal_workers: TwoWorkers) -> Iterator[Any]:
    """A client of two worker processes of 1 GiB that may die."""
    with mortal_workers.client() as client:
        yield client
