"""What Prometheus scrapes from a scheduler is what passes have done."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import pytest
from distributed import Client

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.scheduler_metrics import COUNTERS
from nfs_dask.statistics.counts import ClassCounts
from tests.helpers.schedulers import Scheduler, scheduler_of_its_own

CORPUS = GeneratedCorpus(2000, 300, 3, words_per_document=10, block_rows=100)
COUNTS = ClassCounts(3)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    with scheduler_of_its_own(tmp_path_factory.mktemp("scheduler"), os.environ) as found:
        yield found


def counted(scheduler: Scheduler) -> dict[str, int]:
    scraped = scheduler.metrics()
    return {name: int(scraped.get(f"nfs_dask_{name}_total", -1)) for name in COUNTERS}


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in COUNTERS if after[name] != before[name]}


def test_the_numbers_are_those_of_the_passes(scheduler: Scheduler, tmp_path: Path) -> None:
    assert counted(scheduler)["passes"] == -1, "before the first pass the scheduler knows nothing of us"
    blocks = list(CORPUS.blocks(0, CORPUS.n_blocks))
    read = {
        "blocks": len(blocks),
        "rows": 2000,
        "entries": sum(block.nnz for block in blocks),
        "read_bytes": sum(block.nbytes for block in blocks),
    }
    one_pass = {"passes": 1, "passes_finished": 1, "planned_blocks": len(blocks)}
    with Client(scheduler.address, set_as_default=False) as client:
        dense = DaskEngine(client, run=str(tmp_path / "run")).reduce(COUNTS, CORPUS)
        assert dense.plan is not None and dense.plan.strategy == "dense"
        first = counted(scheduler)
        assert first == dict.fromkeys(COUNTERS, 0) | one_pass | read | {"checkpoints": len(dense.plan.runs)}

        sorted_by_column = DaskEngine(client, panels=3, spool=str(tmp_path)).reduce(COUNTS, CORPUS)
        assert sorted_by_column.plan is not None and sorted_by_column.plan.strategy == "scatter"
        second = grown(first, counted(scheduler))
        assert second.pop("spooled_bytes") > 4 * read["entries"]
        assert second.pop("panels") == len(sorted_by_column.panels) > 1
        assert second == one_pass | read


def test_what_fails_and_what_is_repeated_is_counted(scheduler: Scheduler, tmp_path: Path) -> None:
    with Client(scheduler.address, set_as_default=False) as client:
        DaskEngine(client).reduce(COUNTS, CORPUS)
        before = counted(scheduler)
        flag = tmp_path / "flag"
        assert client.submit(fails_once, str(flag), key="nfs-fails-once", retries=3).result() == "done"
        assert grown(before, counted(scheduler)) == {"repeated_tasks": 1}
        future = client.submit(fails, key="nfs-fails", retries=2)
        assert isinstance(future.exception(), OSError)
        assert grown(before, counted(scheduler)) == {"repeated_tasks": 3, "failed_tasks": 1}
        client.submit(fails, key="somebody-elses").exception()
        assert grown(before, counted(scheduler)) == {"repeated_tasks": 3, "failed_tasks": 1}


def test_without_prometheus_nothing_is_counted_and_nothing_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)  # whoever imports it fails
    spec = find_spec("nfs_dask.engine.scheduler_metrics")
    assert spec is not None and spec.loader is not None
    anew = module_from_spec(spec)
    spec.loader.exec_module(anew)
    plugin = anew.PassMetrics()
    asyncio.run(plugin.start(None))
    plugin.log_event("nfs-passes", {"blocks": 3})
    assert anew._counters() == {}


def fails_once(flag: str) -> str:
    if Path(flag).exists():
        return "done"
    Path(flag).touch()
    raise OSError("by chance")


def fails() -> None:
    raise OSError("always")
