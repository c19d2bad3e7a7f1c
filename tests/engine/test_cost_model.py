"""The model of time: its laws, what it counts beside what passes really do, and fits that find costs again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.cost_model import (
    BLOCK_REQUESTS,
    PHASES,
    TERMS,
    Costs,
    Hosts,
    Measured,
    PassWork,
    fit,
    forecast,
    merge_levels,
    units,
    usual_costs,
)
from nfs_dask.engine.dry_run import DryRunEngine, HypotheticalSource
from nfs_dask.engine.plan import make_plan, merge_tree
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.engine.tasks import fold_panels
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from nfs_dask.units import GiB, MiB

FITTED = [name for name, term in TERMS.items() if term.fitted]
COUNTS = ClassCounts(2)


@st.composite
def works(draw: Any) -> PassWork:
    blocks = draw(st.integers(1, 10**6))
    runs = draw(st.integers(1, min(blocks, 8000)))
    features = draw(st.integers(1, 10**9))
    return PassWork(
        draw(st.sampled_from(["dense", "scatter"])),
        entries=draw(st.integers(0, 10**13)),
        n_features=features,
        n_blocks=blocks,
        runs=runs,
        busiest=-(-blocks // runs),
        fan_in=draw(st.sampled_from([2, 4, 8])),
        state_nbytes=16 * features,
        read_nbytes=draw(st.integers(0, 10**13)),
        spool_nbytes=draw(st.integers(0, 10**13)),
        batches=draw(st.integers(runs, runs + blocks)),
        panels=draw(st.integers(1, 2000)),
        tasks=draw(st.integers(runs, 10_000)),
        remote=draw(st.booleans()),
    )


hosts = st.builds(
    Hosts,
    workers=st.integers(1, 2000),
    threads=st.integers(1, 16),
    cores=st.none() | st.integers(1, 64),
    network=st.none() | st.floats(1e6, 1e12),
    far=st.booleans(),
    store=st.none() | st.floats(1e6, 1e12),
    latency=st.floats(0, 1),
)


# Laws


@given(works(), hosts)
def test_no_term_is_a_gain_and_all_are_numbers(work: PassWork, where: Hosts) -> None:
    counted = units(work, where)
    assert counted.keys() <= TERMS.keys()
    assert all(0 <= count < float("inf") for count in counted.values())
    told = forecast([work], where)
    assert told.seconds > 0
    assert sum(told.phases.values()) == pytest.approx(told.seconds)
    assert told.terms[told.bottleneck] == max(told.terms.values())
    assert told.worker_hours == pytest.approx(where.workers * told.seconds / 3600)
    assert told.moved_nbytes >= 0


@given(works(), hosts, st.integers(1, 50))
def test_more_rows_never_take_less(work: PassWork, where: Hosts, times: int) -> None:
    larger = replace(
        work,
        entries=times * work.entries,
        n_blocks=times * work.n_blocks,
        busiest=times * work.busiest,
        read_nbytes=times * work.read_nbytes,
        spool_nbytes=times * work.spool_nbytes,
        batches=times * work.batches,
    )
    assert forecast([larger], where).seconds >= forecast([work], where).seconds * (1 - 1e-9)


@given(works(), hosts)
def test_faster_links_stores_and_more_cores_never_hurt(work: PassWork, where: Hosts) -> None:
    told = forecast([work], where).seconds * (1 + 1e-9)
    assert where.network is None or forecast([work], replace(where, network=10 * where.network)).seconds <= told
    assert where.store is None or forecast([work], replace(where, store=10 * where.store)).seconds <= told
    assert where.cores is None or forecast([work], replace(where, cores=where.cores + 1)).seconds <= told
    assert forecast([work], replace(where, latency=where.latency / 2)).seconds <= told


def test_passes_and_the_choice_of_features_add_up() -> None:
    plan = make_plan(COUNTS, GeneratedCorpus(10**6, 10**6), Resources(4, 1, GiB, spool="/shared", remote=True))
    one = forecast([plan.work], Hosts(4))
    three = forecast([plan.work] * 3, Hosts(4))
    assert three.seconds == pytest.approx(3 * one.seconds)
    assert three.tasks == 3 * one.tasks
    chosen = forecast([plan.work], Hosts(4), solved=True)
    assert chosen.phases["solve"] == pytest.approx(10**6 * usual_costs().seconds["solve"])
    assert plan.seconds == pytest.approx(one.seconds)


def test_links_are_counted_in_bits_and_stores_in_bytes() -> None:
    where = Hosts(workers=10, network=8e9, far=True)
    assert where.from_store(10**10) == pytest.approx(1)  # a gigabyte on each of ten links of a gigabyte a second
    assert replace(where, store=2e9).from_store(10**10) == pytest.approx(5)
    assert replace(where, far=False).from_store(10**10) == 0
    plan = make_plan(COUNTS, GeneratedCorpus(10**7, 10**6), Resources(2, 1, remote=True, spool=None))
    assert plan.strategy == "dense"
    wire = units(replace(plan.work, runs=2), Hosts(2, network=8e9))["wire"]
    assert wire == pytest.approx(3 * 2e6 / 1e9)  # one state to the other, and that to the scheduler and the client
    reals = replace(plan.work, runs=2, packed_nbytes=None)
    assert units(reals, Hosts(2, network=8e9))["wire"] == pytest.approx(8 * wire)  # whole numbers take a byte each


# What is counted is what passes do


@given(st.integers(1, 500), st.integers(2, 9))
def test_levels_are_those_of_the_tree_of_merges(runs: int, fan_in: int) -> None:
    added: list[int] = []

    def merge(depths: list[int]) -> int:
        added.append(len(depths) - 1)
        return 1 + max(depths)

    depth = merge_tree([0] * runs, fan_in, merge)
    levels = list(merge_levels(runs, fan_in))
    assert sum(states for states, _ in levels) == sum(added) == runs - 1
    assert len(levels) <= depth <= len(levels) + 1  # what is left over is merged last
    assert all(1 <= largest < fan_in for _, largest in levels)


def test_requests_are_those_that_a_pass_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(chunk=256, shard=4096, row_chunk=64, row_shard=4096, block=1000)
    write_store(GeneratedCorpus(400, 9000), tmp_path / "texts.zarr", layout=layout)
    source = nfs.open_dataset(tmp_path / "texts.zarr").source
    reads: Counter[str] = Counter()

    def count(read: Callable[..., Any]) -> Callable[..., Any]:
        def counted(self: Folder, name: str, *args: Any, **keywords: Any) -> Any:
            reads["spool" if name.endswith(".spool") else "store" if "texts.zarr" in self.location else "other"] += 1
            return read(self, name, *args, **keywords)

        return counted

    for method in ("read", "read_array"):
        monkeypatch.setattr(Folder, method, count(getattr(Folder, method)))
    folds: list[tuple[int, int]] = []

    def fold(job: Any, start: int, stop: int, tick: Any) -> Any:
        folds.append((start, stop))
        return fold_panels(job, start, stop, tick)

    monkeypatch.setattr("nfs_dask.engine.engine.fold_panels", fold)
    found = SerialEngine(panels=5, spool=str(tmp_path / "spool")).reduce(COUNTS, source)
    assert found.plan is not None and found.plan.strategy == "scatter"
    assert source.n_blocks > 10
    cut = len(found.panels)  # more than planned, as columns are uneven
    assert 5 <= cut <= 10 and sorted(panel for fold in folds for panel in range(*fold)) == list(range(cut))
    assert found.plan.folds <= len(folds) < 2 * found.plan.folds
    assert reads["spool"] == replace(found.plan.work, panels=cut, folds=len(folds)).pieces(1)
    assert reads["store"] <= BLOCK_REQUESTS * source.n_blocks


# Fits


def synthetic(costs: Costs) -> list[Measured]:
    """Passes as if these were their costs, to the last digit."""
    found = []
    for rows, features, workers, gbit in itertools.product((10**6, 10**7), (10**6, 10**8), (1, 2, 4), (None, 1)):
        for panels in (1, 40, 400):
            resources = Resources(workers, 1, spool="/shared", remote=True)
            plan = make_plan(COUNTS, GeneratedCorpus(rows, features), resources, panels)
            where = Hosts(workers, 1, cores=2, network=gbit and gbit * 1e9)
            found.append(Measured(plan.work, where, forecast([plan.work], where, costs).phases))
    return found


def test_a_fit_finds_the_costs_that_small_passes_had() -> None:
    zero = Costs(dict.fromkeys(FITTED, 0.0))
    true = Costs({name: cost * (2 + number % 3) for number, (name, cost) in enumerate(usual_costs().seconds.items())})
    found = fit(synthetic(true), zero)
    other = PassWork("scatter", 10**11, 10**8, 30_000, 800, 40, 0, 16 * 10**8, 10**12, 10**12, 4000, 300, 1100)
    for work in (other, replace(other, strategy="dense", fan_in=4, n_features=10**6, state_nbytes=16 * 10**6)):
        where = Hosts(100, 1, network=1e10)
        assert forecast([work], where, found).seconds == pytest.approx(forecast([work], where, true).seconds, rel=1e-3)


def test_what_no_pass_has_stays_as_it_is_known() -> None:
    dense = [one for one in synthetic(usual_costs()) if one.work.strategy == "dense"]
    known = Costs(dict.fromkeys(FITTED, 7.0))
    found = fit(dense, known, given=("task",))
    assert {name for name, cost in found.seconds.items() if cost == 7.0} >= {"task", "spool", "panel", "open", "solve"}
    assert found.seconds["entry"] == pytest.approx(usual_costs().seconds["entry"], rel=1e-3)
    assert min(fit([replace(one, phases={"fold": 1e-9}) for one in dense], known).seconds.values()) >= 0


def test_costs_are_kept_in_a_file_and_checked(tmp_path: Path) -> None:
    usual = usual_costs()
    assert usual.seconds.keys() == set(FITTED)
    assert "python benchmarks/scaling.py" in usual.command
    assert {term.phase for term in TERMS.values()} == PHASES.keys()
    usual.save(tmp_path / "costs.json")
    assert Costs.load(tmp_path / "costs.json") == usual
    content = json.loads((tmp_path / "costs.json").read_text())
    for wrong, message in (
        ({"format": 9}, "has format 9; this version reads 1"),
        ({"seconds": {}}, "holds no costs .*nfs-dask plan --calibrate"),
        ({"seconds": content["seconds"] | {"entry": -1}}, "has costs below 0"),
        ({"seconds": content["seconds"] | {"entry": float("nan")}}, "has costs below 0"),
        ({"scheduler_nbytes": 3}, "holds no costs"),
    ):
        (tmp_path / "wrong.json").write_text(json.dumps(content | wrong))
        with pytest.raises(InputError, match=message):
            Costs.load(tmp_path / "wrong.json")
    with pytest.raises(InputError, match="holds no costs"):
        Costs.load(tmp_path / "none.json")


# What is not there yet


def test_ten_billion_rows_are_planned_at_once_and_the_plan_is_small() -> None:
    small = GeneratedCorpus(100_000, 10**6)
    started = time.thread_time()
    grown = HypotheticalSource(small, 10**10, 10**8)
    plan = DryRunEngine(Resources(1000, 1, 4 * GiB, 300 * MiB, "/shared", True)).plan(COUNTS, grown)
    told = forecast([plan.work], Hosts(1000, network=1e10, far=True))
    assert time.thread_time() - started < 0.5  # it takes some milliseconds
    assert plan.fits and plan.n_rows == 10**10 and plan.n_features == 10**8
    assert plan.entries == 10**10 * small.about_entries // 10**5
    assert len(plan.runs) <= 13_000 and len(json.dumps(plan.to_json())) < 300_000
    assert told.scheduler_nbytes == forecast([plan.work] * 2, told.hosts).scheduler_nbytes > 0


def test_what_is_foretold_grows_with_rows_alone_and_is_never_read() -> None:
    small = GeneratedCorpus(10_000, 5000)
    twice = HypotheticalSource(small, 20_000)
    assert (twice.n_rows, twice.n_features, twice.read_nbytes) == (20_000, 5000, 2 * small.read_nbytes)
    assert twice.about_entries == 2 * small.about_entries
    assert twice.fingerprint is None and (twice.classes == small.classes).all()
    assert HypotheticalSource(small).about_entries == small.about_entries
    with pytest.raises(InputError, match="cannot be read"):
        twice.blocks(0, 1)
    unknown = GeneratedCorpus(10, 500)
    unknown._facts = dataclasses.replace(unknown.facts, n_rows=-1)
    with pytest.raises(InputError, match="ingest them into a store first"):
        HypotheticalSource(unknown, 100)


@pytest.mark.parametrize("rows", [10**5, 10**7, 10**9])
def test_more_rows_take_longer_in_the_plans_that_are_made_for_them(rows: int) -> None:
    small, there = GeneratedCorpus(10**5, 10**7), DryRunEngine(Resources(50, 2, 4 * GiB, 300 * MiB, "/shared", True))
    less, more = (there.plan(COUNTS, HypotheticalSource(small, n)).seconds for n in (rows, 10 * rows))
    assert less < more < 20 * less
