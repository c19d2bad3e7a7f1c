"""Scheduler and worker as the commands of docs/clusters.md start them, in processes of their own."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nfs_dask.cluster.finding import connect, workers_of
from nfs_dask.cluster.tls_audit import greets, greets_anonymous, greets_plain
from nfs_dask.errors import ClusterError
from tests.helpers.certificates import Certificates
from tests.helpers.commands import run
from tests.helpers.places import ROOT
from tests.helpers.sockets import listening, reached_from_elsewhere
from tests.test_readme import blocks

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


PORT = free_port()


def command(begin: str) -> list[str]:
    """The words of a command of the page, on this machine."""
    text = "\n".join(blocks("", ROOT / "docs" / "clusters.md")).replace("\\\n", " ")
    (line,) = (line for line in text.splitlines() if line.startswith(begin))
    for theirs, ours in {"10.0.0.1:8786": f"127.0.0.1:{PORT}", "10.0.0.": "127.0.0.", "8786": str(PORT)}.items():
        line = line.replace(theirs, ours)
    return shlex.split(line.replace("127.0.0.2", "127.0.0.1").replace(":8787", ":0"))


def wait_for(there: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's first command has made ``certs``, and others have made some that open nothing."""
    folder = tmp_path_factory.mktemp("by-the-book")
    words = command("nfs-dask doctor --make-certificates")[1:]
    run(*(str(folder / word) if word == "certs" else word for word in words))
    Certificates.made(folder / "kinds", folder / "certs")
    return folder


@pytest.fixture(scope="module")
def started(folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a command of Dask in the folder, and ends it at last."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(words: list[str]) -> subprocess.Popen[bytes]:
        assert words[0] == "dask"
        program = [sys.executable, "-m", "dask", *words[1:]]
        with open(folder / "log", "ab") as log:
            begun.append(subprocess.Popen(program, cwd=folder, stdout=log, stderr=log, start_new_session=True))
        return begun[-1]

    yield start
    for process in reversed(begun):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def processes(started: Callable[..., subprocess.Popen[bytes]], folder: Path) -> list[subprocess.Popen[bytes]]:
    scheduler = started(command("dask scheduler"))
    kinds = Certificates(folder / "kinds")
    wait_for(lambda: listening(scheduler.pid) and greets(("127.0.0.1", PORT), kinds.context("ours")))
    return [scheduler, started(command("dask worker"))]


@pytest.fixture
def kinds(folder: Path, processes: list[subprocess.Popen[bytes]]) -> Certificates:
    found = Certificates(folder / "kinds")
    with connect(f"tls://127.0.0.1:{PORT}", *found.of("client").values()) as client:
        client.wait_for_workers(1, timeout=60)
    return found


def test_the_pages_doctor_is_content(kinds: Certificates, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shown = run(*command("nfs-dask doctor --scheduler")[1:]).stdout
    assert "traffic is encrypted" in shown and "nothing stands in the way" in shown
    assert "open to whoever" not in shown and "PROBLEM" not in shown


def test_every_port_is_closed_to_strangers(kinds: Certificates, processes: list[subprocess.Popen[bytes]]) -> None:
    """Of scheduler, nanny and worker; what is left are pages of theirs, on loopback."""
    sockets = {one for process in processes for one in listening(process.pid)}
    assert reached_from_elsewhere(sockets) == set()
    doors = [(host, port) for _, host, port in sockets if greets((host, port), kinds.context("ours"))]
    assert len(doors) == 3, "scheduler, nanny, worker"
    for door in doors:
        assert not greets_plain(door) and not greets_anonymous(door)
        assert not greets(door, kinds.context("foreign"))
        assert not greets(door, kinds.context("expired"))


@pytest.mark.parametrize("kind", ["foreign", "expired"])
def test_clients_are_turned_away(kinds: Certificates, kind: str) -> None:
    files = kinds.of("client", kind)
    with (
        pytest.raises(ClusterError, match="cannot be reached"),
        connect(f"tls://127.0.0.1:{PORT}", *files.values(), seconds=2),
    ):
        pass
    with (
        pytest.raises(ClusterError, match="cannot be reached"),
        connect(f"tcp://127.0.0.1:{PORT}", seconds=2),
    ):
        pass


@pytest.mark.parametrize("kind", ["foreign", "expired", "none"])
def test_workers_are_turned_away(
    kinds: Certificates, started: Callable[..., subprocess.Popen[bytes]], folder: Path, kind: str
) -> None:
    scheme, options = ("tcp", []) if kind == "none" else ("tls", kinds.options("worker", kind))
    words = ["dask", "worker", f"{scheme}://127.0.0.1:{PORT}", "--host", "127.0.0.1", "--no-nanny", "--name", kind]
    before = (folder / "log").read_text()
    intruder = started([*words, "--dashboard-address", "127.0.0.1:0", "--death-timeout", "8", *options])
    wait_for(lambda: intruder.poll() is not None)
    refused = (folder / "log").read_text()[len(before) :]
    with connect(f"tls://127.0.0.1:{PORT}", *kinds.of("client").values()) as client:
        assert {worker["name"] for worker in workers_of(client).values()}.isdisjoint({kind})
        assert client.submit(int, 7, pure=False).result() == 7, "the others work on"
    assert "Waiting to connect to" in refused and "Registered to" not in refused
