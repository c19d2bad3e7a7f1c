"""Who is there for a pass: those who joined, those who left, and those who have no room for it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from nfs_dask.cluster import crew as crews
from nfs_dask.cluster.crew import Crew
from nfs_dask.errors import PlanError
from nfs_dask.units import GiB, MiB


class Cluster:
    """What a scheduler tells of workers, and how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **memory: int) -> None:
        self.memory, self.asked = memory, 0
        monkeypatch.setattr(crews, "workers_of", lambda client: self.told())

    def told(self) -> dict[str, dict[str, Any]]:
        self.asked += 1
        return {name: {"name": name, "memory_limit": m, "nthreads": 2} for name, m in self.memory.items()}

    def crew(self) -> Crew:
        def nthreads() -> dict[str, int]:
            self.asked += 1
            return dict.fromkeys(self.memory, 2)

        client = SimpleNamespace(nthreads=nthreads, cluster=None)
        return Crew(client, lambda limit, threads: not limit or limit >= threads * GiB, GiB)


def test_all_who_have_room_count(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(monkeypatch, a=4 * GiB, b=2 * GiB, c=0)
    crew = cluster.crew()
    crew.look()
    assert (crew.slots, crew.allowed) == (6, None)
    cluster.memory = {"a": 4 * GiB, "tiny": GiB}
    crew.look()  # too soon to see it
    assert crew.slots == 6
    crew.look(again=True)
    crew.look(again=True)
    assert (crew.slots, crew.allowed) == (2, ["a"])
    assert caplog.messages == ["left out of this pass, as its tasks do not fit there: tiny (1.0 GiB)"]
    cluster.memory = {"a": 4 * GiB}
    crew.look(again=True)
    assert (crew.slots, crew.allowed) == (2, None)


def test_looks_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, a=4 * GiB)
    crew = cluster.crew()
    for _ in range(1000):
        crew.look()
    assert cluster.asked == 1


def test_a_cluster_of_small_workers_is_refused_with_what_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Cluster(monkeypatch, a=GiB, b=300 * MiB).crew()
    with pytest.raises(
        PlanError, match=r"larger .* a \(1.0 GiB\), b \(300.0 MiB\)\. Start .* thread with 1.0\d* GiB each"
    ):
        crew.look()


def test_those_with_room_are_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(monkeypatch)
    crew = cluster.crew()
    crew.look()
    assert (crew.slots, crew.allowed) == (0, None)  # of an adaptive cluster, before it has started any
    for memory in ({"a": 4 * GiB}, {"tiny": GiB}, {"tiny": GiB, "other": GiB}):
        cluster.memory = memory
        crew.look(again=True)
    assert (crew.slots, crew.allowed) == (0, [])
    cluster.memory = {"tiny": GiB, "b": 4 * GiB}
    crew.look(again=True)
    assert (crew.slots, crew.allowed) == (2, ["b"])
    assert caplog.records[0].levelno == logging.WARNING
