"""What is asked of clusters: how many workers to plan for, what they have, and which places all of them reach."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.system import MEMORY_LIMIT

from nfs_dask.cluster import finding as clusters
from nfs_dask.cluster.finding import connect, current_client, find_client, measure, planned_workers, start_cluster
from nfs_dask.cluster.warming import Warming, warm_up
from nfs_dask.errors import ClusterError
from nfs_dask.files.folder import Folder
from nfs_dask.units import GiB, MiB

# Workers in the tests' own process pause at four fifths of their limit, and all tests leave their memory in it.
AMPLE = MEMORY_LIMIT // 2


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Client]:
    """Two worker processes whose client is nobody's default."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=GiB, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


# How many workers


def client_of(present: int, maximum: Any = None, adaptive: bool = True) -> Any:
    workers = {f"tcp://10.0.0.{i}:1": {} for i in range(present)}
    strategy = SimpleNamespace(maximum=maximum) if adaptive else None
    return SimpleNamespace(cluster=SimpleNamespace(_adaptive=strategy), **asked_for(workers))


def asked_for(workers: dict[str, Any]) -> dict[str, Any]:
    """What a client has whose scheduler tells of these workers."""
    scheduler = SimpleNamespace(identity=lambda n_workers: {"workers": workers})
    return {"scheduler": scheduler, "sync": lambda function, **keywords: function(**keywords)}


def test_workers_as_asked_else_the_maximum_else_those_present() -> None:
    assert planned_workers(client_of(2, maximum=9), asked=5) == 5
    assert planned_workers(client_of(2, maximum=9), asked=None) == 9
    assert planned_workers(client_of(0, maximum=9), asked=None) == 9
    assert planned_workers(client_of(3, adaptive=False), asked=None) == 3
    for unbounded in (float("inf"), None, 0, 2**31):
        assert planned_workers(client_of(3, maximum=unbounded), asked=None) == 3
    remote = SimpleNamespace(cluster=None, **asked_for({"a": {}}))
    assert planned_workers(remote, asked=None) == 1


def test_more_than_a_handful_of_workers_are_all_counted() -> None:
    """Dask lists five workers unless it is asked for all, and a client hears of none every now and then."""
    with (
        LocalCluster(
            n_workers=7, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=AMPLE
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        hear_of_nobody = client._update_scheduler_info
        client._update_scheduler_info = lambda n_workers=0: hear_of_nobody(n_workers=0)
        resources = measure(client, None, [])
        assert resources.workers == 7
        assert resources.threads == 1
        assert resources.memory_limit == AMPLE


# What they have


def test_measured_are_the_weakest_of_all(two_workers: Client) -> None:
    resources = measure(two_workers, None, [])
    assert (resources.workers, resources.threads, resources.memory_limit) == (2, 1, GiB)
    assert resources.remote
    assert resources.spool is None
    sizes = two_workers.run(lambda: psutil.Process().memory_info().rss)
    assert 50 * MiB < resources.warm < 600 * MiB
    assert resources.warm <= 1.2 * max(sizes.values())
    assert measure(two_workers, 33, []).workers == 33


def test_the_smallest_memory_and_the_most_threads_count() -> None:
    spec = {
        "cls": "distributed.Worker",
        "options": {"nthreads": 1, "memory_limit": 2 * AMPLE, "dashboard_address": None},
    }
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
    ):
        local.worker_spec = {
            0: spec,
            1: {**spec, "options": {**spec["options"], "nthreads": 3, "memory_limit": AMPLE}},
        }
        client.sync(local._correct_state)
        client.wait_for_workers(2, timeout=30)
        resources = measure(client, None, [])
    assert (resources.workers, resources.threads, resources.memory_limit) == (2, 3, AMPLE)


def test_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "FIRST_WORKER_SECONDS", 0.3)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
        pytest.raises(ClusterError, match="no worker has joined .* in 0.3 s; start workers"),
    ):
        measure(client, None, [])


def test_a_worker_that_dies_while_it_warms_up_is_not_waited_for(
    two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies_once(places: list[str], token: str, warming: Warming) -> dict[str, Any]:
        import os
        from pathlib import Path

        from nfs_dask.cluster.warming import warm_up

        if not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), 9)
        return warm_up(places, token, warming)

    mark = str(tmp_path / "one has died")
    monkeypatch.setattr(clusters, "warm_up", dies_once)
    assert measure(two_workers, None, []).threads == 1
    assert Path(mark).exists()
    two_workers.wait_for_workers(2, timeout=30)


def test_workers_that_never_get_warm_are_given_up(two_workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "warm_up", lambda places, token, warming: __import__("time").sleep(1.5))
    monkeypatch.setattr(clusters, "WARM_SECONDS", 0.2)
    with pytest.raises(
        ClusterError, match="no worker of .* was ready in 0.2 s, and 0 died or left: busy, or still loading"
    ):
        measure(two_workers, None, [])


# Which places they reach


@pytest.fixture
def elsewhere(two_workers: Client) -> Iterator[Any]:
    """Makes one of the two workers see or do less than the other, until the test is over."""
    changed = []

    def change(worker: int, exists: Any = None, write: Any = None) -> None:
        def patch() -> None:
            from nfs_dask.files.folder import Folder

            Folder.real = getattr(Folder, "real", (Folder.exists, Folder.write))  # type: ignore[attr-defined]
            Folder.exists = exists or Folder.exists  # type: ignore[method-assign]
            Folder.write = write or Folder.write  # type: ignore[method-assign]

        address = sorted(two_workers.scheduler_info(n_workers=-1)["workers"])[worker]
        two_workers.run(patch, workers=[address])
        changed.append(address)

    def restore() -> None:
        from nfs_dask.files.folder import Folder

        Folder.exists, Folder.write = Folder.real  # type: ignore[attr-defined, method-assign]

    yield change
    two_workers.run(restore, workers=changed)


def places(tmp_path: Path) -> list[Folder]:
    return [Folder(str(tmp_path / name)) for name in ("first", "second")]


def test_the_first_place_that_all_reach(two_workers: Client, tmp_path: Path) -> None:
    first, second = places(tmp_path)
    assert measure(two_workers, None, [first, second]).spool == first.location
    assert measure(two_workers, None, [second, first]).spool == second.location
    for nowhere in ("/dev/null/x", "/proc/x", "http://127.0.0.1:9"):
        assert measure(two_workers, None, [Folder(nowhere), second]).spool == second.location
        assert measure(two_workers, None, [Folder(nowhere)]).spool is None
    assert first.names() == second.names() == []  # marks are gone


@pytest.mark.parametrize("worker", [0, 1])
def test_a_place_that_one_worker_does_not_see(two_workers: Client, elsewhere: Any, tmp_path: Path, worker: int) -> None:
    elsewhere(worker, exists=lambda self, name: os.path.exists(self.path(name)) and "first" not in self.location)
    first, second = places(tmp_path)
    assert measure(two_workers, None, [first, second]).spool == second.location
    assert measure(two_workers, None, [first]).spool is None
    assert first.names() == second.names() == []


def test_a_place_that_one_worker_cannot_write(two_workers: Client, elsewhere: Any, tmp_path: Path) -> None:
    def write(self: Folder, name: str, content: bytes) -> None:
        raise PermissionError(13, "mounted for reading only", self.path(name))

    elsewhere(1, write=write)
    assert measure(two_workers, None, places(tmp_path)).spool is None


def test_a_place_that_one_worker_has_no_credentials_for(two_workers: Client, elsewhere: Any, tmp_path: Path) -> None:
    def exists(self: Folder, name: str) -> bool:
        raise OSError("Unable to locate credentials")

    elsewhere(0, exists=exists)
    assert measure(two_workers, None, places(tmp_path)).spool is None


def test_warming_up_reports_in_order(tmp_path: Path) -> None:
    first, second = places(tmp_path)
    second.write(".nfs-probe-abc", b"")
    report = warm_up([first.location, second.location, "/dev/null/x"], "abc", Warming())
    assert report["reaches"] == [False, True, False]
    assert second.names() == [".nfs-probe-abc"]
    assert report["own"] > 20 * MiB


# Which client


@contextlib.contextmanager
def some_cluster() -> Iterator[Any]:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local:
        yield local


def test_a_client_that_was_there_stays_open() -> None:
    with some_cluster() as local, Client(local) as mine:
        assert current_client() is mine
        with find_client(None, None, None) as client:
            assert client is mine
        assert mine.status == "running"
        with find_client(local.scheduler_address, None, None) as client:
            assert client is not mine
            assert client.submit(int, 5, pure=False).result() == 5
        assert client.status == "closed"
        assert current_client() is mine
    assert current_client() is None


def test_a_cluster_made_for_the_occasion_ends_with_it() -> None:
    with find_client(None, None, None) as client:
        assert current_client() is None  # the user's default is left alone
        assert client.submit(os.getpid, pure=False).result() == os.getpid()  # threads of this process
    assert client.status == "closed"
    assert client.cluster.status.name == "closed"


def test_processes_when_workers_or_memory_are_asked_for() -> None:
    with find_client(None, 1, 700 * MiB) as client:
        pid = client.submit(os.getpid, pure=False).result()
        assert pid != os.getpid()
        assert measure(client, 1, []).memory_limit == 700 * MiB
    assert not psutil.pid_exists(pid)


def test_threads_as_asked() -> None:
    with start_cluster(threads=3, processes=False) as client:
        assert [w["nthreads"] for w in client.scheduler_info(n_workers=-1)["workers"].values()] == [3]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://somewhere", "tcp://no-such-host.invalid:8786"])
def test_no_scheduler_there(address: str) -> None:
    complaint = f"the scheduler at {re.escape(address)} cannot be reached"
    with pytest.raises(ClusterError, match=complaint), connect(address, seconds=0.5, insecure=True):
        pass
