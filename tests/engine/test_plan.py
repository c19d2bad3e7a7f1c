"""Plans are values: pure, printable, bounded, complete, and refused with a number that helps."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import re
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import nfs_dask as nfs
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.distributed import SMALL_JOB
from nfs_dask.engine.panel_cuts import COLUMN_WORK, PANEL_WORK, even_bounds, folded_together
from nfs_dask.engine.plan import CHEAP_STATE, Plan, make_plan, tile_shift
from nfs_dask.errors import InputError, PlanError
from nfs_dask.files.spool import Tiling
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.units import GiB, MiB, parse_bytes


class Planned(Source):
    """All that a plan asks of a source."""

    def __init__(self, block_nbytes: int = 32 * MiB, block_entries: int = 6 * MiB, **facts: Any) -> None:
        usual = {"n_rows": 10**6, "n_features": 10**6, "n_blocks": 100, "kind": "count", "trusted": True}
        self._facts = Facts(**(usual | {"fingerprint": "abc"} | facts))
        self._sizes = Sizes(block_nbytes, block_entries, self.n_blocks * block_nbytes)

    def blocks(self, start: int, stop: int) -> Any:
        raise AssertionError("a plan reads nothing")

    def names(self, columns: Any) -> Any:
        raise AssertionError("a plan reads nothing")


COUNTS = ClassCounts(2)
CLUSTER = Resources(workers=4, threads=2, memory_limit=2 * GiB, spool="/spool", remote=True)


def plan(statistic: ClassCounts = COUNTS, resources: Resources = CLUSTER, panels: Any = None, **facts: Any) -> Plan:
    return make_plan(statistic, Planned(**facts), resources, panels)


facts = st.builds(
    Planned,
    n_rows=st.integers(-1, 10**12),
    n_features=st.integers(1, 10**9),
    n_blocks=st.integers(1, 10**7),
    nnz=st.none() | st.integers(0, 10**13),
    kind=st.sampled_from([None, "binary", "count", "real", "signed"]),
    weighted=st.booleans(),
    block_nbytes=st.integers(1, 256 * MiB),
    block_entries=st.integers(1, 64 * MiB),
    import_nbytes=st.integers(0, 100 * MiB),
)
resources = st.builds(
    Resources,
    workers=st.integers(1, 300),
    threads=st.integers(1, 16),
    memory_limit=st.just(0) | st.integers(0, 64 * GiB),
    warm=st.integers(0, 400 * MiB),
    spool=st.sampled_from([None, "/spool"]),
    remote=st.booleans(),
)
statistics = st.builds(ClassCounts, st.integers(1, 3000), with_documents=st.booleans())


@st.composite
def plans(draw: Any) -> Plan:
    given_resources = draw(resources)
    panels = draw(st.none() | st.integers(1, 500)) if given_resources.spool else None
    return make_plan(draw(statistics), draw(facts), given_resources, panels)


# A value


@given(statistics, facts, resources)
def test_the_same_input_gives_the_same_plan(statistic: Any, source: Any, given_resources: Resources) -> None:
    first, second = (make_plan(statistic, source, given_resources) for _ in range(2))
    assert first == second
    assert str(first) == str(second)


@given(plans())
def test_json_round_trip(made: Plan) -> None:
    text = json.dumps(made.to_json(), allow_nan=False)
    back = Plan.from_json(json.loads(text))
    assert back == made
    assert json.dumps(back.to_json()) == text


def test_it_can_be_read() -> None:
    text = str(plan(ClassCounts(2), n_features=10**8, n_blocks=1234, nnz=10**9))
    assert "class_counts over 1,000,000 rows x 100,000,000 features" in text
    assert re.search(r"scatter: entries are spooled by column, then \d+ panel\(s\) of [\d,]+ features", text)
    assert re.search(r"\d+ run\(s\) over 1,234 blocks, on 4 worker\(s\) x 2 thread\(s\)", text)
    assert re.search(r"at most [\d.]+ [MG]iB of 2.0 GiB a worker", text)
    assert "Client    at most 512.0 MiB more than it has now" in text
    assert max(map(len, text.splitlines())) < 140
    assert "an unknown number of rows" in str(plan(n_rows=-1))
    assert "Refused" in str(plan(resources=replace(CLUSTER, memory_limit=GiB // 4)))
    assert "Refused" not in text


@given(plans())
def test_it_travels_whole(made: Plan) -> None:
    assert pickle.loads(pickle.dumps(made)) == made


def test_it_is_small_on_its_way_to_a_thousand_workers() -> None:
    made = plan(n_features=10**8, n_blocks=60_000, nnz=10**12, resources=replace(CLUSTER, workers=1000, threads=1))
    assert len(made.runs) > 5000
    assert len(pickle.dumps(made)) < SMALL_JOB // 4  # larger jobs have to be copied to every worker first


# Complete


@given(plans())
def test_every_block_is_in_one_run_and_in_one_batch(made: Plan) -> None:
    assert made.runs[0][0] == 0
    assert made.runs[-1][1] == made.n_blocks
    assert all(start < stop for start, stop in made.runs)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(made.runs))
    lengths = [stop - start for start, stop in made.runs]
    assert lengths == sorted(lengths, reverse=True)
    assert 1 <= made.batch <= max(lengths)


@given(plans())
def test_panels_cover_all_features_and_lie_on_tiles(made: Plan) -> None:
    if made.strategy == "scatter":
        bounds = even_bounds(made, np.ones(-(-made.n_features // (1 << made.tile_shift))))
        assert bounds[0] == 0
        assert bounds[-1] == made.n_features
        assert made.panels <= len(bounds) - 1 <= made.panels + made.resources.slots + 1
        assert all(a < b for a, b in itertools.pairwise(bounds))
        assert all(bound % (1 << made.tile_shift) == 0 for bound in bounds[:-1])
        tiling = Tiling(made.n_features, 3, made.tile_shift)
        buckets = [tiling.buckets(a, b) for a, b in itertools.pairwise(bounds[:50])]
        assert all(a[1] == b[0] for a, b in itertools.pairwise(buckets))
        assert tiling.buckets(0, made.n_features) == (0, tiling.n_buckets)


@pytest.mark.parametrize("panels", [2, 3, 7, 64])
@pytest.mark.parametrize("n_features", [64, 900, 10**6, 10**8])
def test_about_as_many_panels_as_asked_for(panels: int, n_features: int) -> None:
    assert panels / 2 < plan(panels=panels, n_features=n_features).panels <= panels


def test_no_more_panels_than_features() -> None:
    for n_features in (1, 2, 5):
        made = plan(panels=7, n_features=n_features)
        assert made.strategy == "scatter"
        assert made.panels == n_features


# Strategy


def strategy(**options: Any) -> str:
    return plan(**options).strategy


def test_strategies() -> None:
    big = CHEAP_STATE // 16 * 4
    assert strategy(n_features=1000) == "dense"
    assert strategy(n_features=big) == "scatter"
    assert strategy(n_features=big, resources=replace(CLUSTER, spool=None)) == "dense"
    assert strategy(n_features=big, panels=1) == "dense"
    assert strategy(n_features=1000, panels=2) == "scatter"
    assert (
        strategy(n_features=10**9, resources=replace(CLUSTER, workers=1, threads=1)) == "scatter"
    )  # dense is too large
    assert strategy(n_features=10**9, panels=1) == "dense"  # asked for; refused later
    with pytest.raises(PlanError, match=r"7 panels need a folder that all workers reach: name one with spool="):
        plan(panels=7, resources=replace(CLUSTER, spool=None))


def test_a_statistic_that_cannot_be_cut() -> None:
    class Whole(ClassCounts):
        name = "whole"
        entrywise = False

    assert strategy(statistic=Whole(2), n_features=10**9) == "dense"
    with pytest.raises(PlanError, match="whole cannot be cut into panels"):
        plan(Whole(2), panels=3)


@pytest.mark.parametrize("panels", [0, -1])
def test_panels_below_one_are_refused(panels: int) -> None:
    with pytest.raises(InputError, match=f"panels={panels}; give 1 or more, or None"):
        plan(panels=panels)


@pytest.mark.parametrize("empty", [{"n_blocks": 0}, {"n_features": 0}])
@pytest.mark.parametrize("panels", [None, 1, 3])
def test_data_without_rows_or_columns_are_refused(empty: dict[str, int], panels: Any) -> None:
    with pytest.raises(InputError, match=r"the data have \d+ block\(s\) and \d+ column\(s\); give at least one"):
        plan(panels=panels, **empty)


# Size


@pytest.mark.parametrize("n_features", [1000, 12_080_000])
def test_tasks_do_not_follow_the_data(n_features: int) -> None:
    sizes = [plan(n_features=n_features, n_blocks=n) for n in (10**5, 10**9)]
    assert abs(sizes[0].tasks - sizes[1].tasks) <= 1  # lengths are whole blocks
    assert sizes[0].tasks < 200
    assert len(json.dumps(sizes[1].to_json())) < 20_000


def test_a_petabyte_is_planned_in_no_time() -> None:
    started = time.thread_time()
    made = plan(n_features=10**9, n_blocks=10**15 // (32 * MiB), resources=replace(CLUSTER, workers=1000))
    assert made.read_nbytes == pytest.approx(1e15, rel=1e-6)
    assert made.fits
    assert len(str(made)) < 1000
    assert time.thread_time() - started < 0.5  # it takes a few milliseconds


def test_each_shipped_block_is_a_task_of_its_own() -> None:
    assert len(plan(n_blocks=77, in_memory=True).runs) == 77
    assert len(plan(n_blocks=77, in_memory=True, resources=replace(CLUSTER, remote=False)).runs) <= 64


# Memory


@given(statistics, facts, resources)
def test_the_number_in_a_refusal_fits(statistic: Any, source: Any, given_resources: Resources) -> None:
    made = make_plan(statistic, source, given_resources)
    if made.fits:
        made.check()
        return
    with pytest.raises(PlanError) as caught:
        made.check()
    asked = re.search(r"Give each worker ([\d,.]+ \w+)", str(caught.value))
    assert asked is not None
    enough = math.ceil(parse_bytes(asked[1].replace(",", "")))
    make_plan(statistic, source, replace(given_resources, memory_limit=enough)).check()
    assert enough <= 1.11 * made.peak_nbytes / 0.6 + 1


@given(statistics, facts, resources, st.floats(1, 100))
def test_more_memory_never_hurts(statistic: Any, source: Any, given_resources: Resources, factor: float) -> None:
    assume(given_resources.memory_limit)
    more = replace(given_resources, memory_limit=int(given_resources.memory_limit * factor))
    if make_plan(statistic, source, given_resources).fits:
        assert make_plan(statistic, source, more).fits


@given(statistics, facts, resources)
def test_a_plan_that_fits_stays_below_what_is_usable(statistic: Any, source: Any, given_resources: Resources) -> None:
    made = make_plan(statistic, source, given_resources)
    assert made.peak_nbytes >= given_resources.warm + given_resources.threads * max(made.task_nbytes.values())
    if given_resources.memory_limit:
        assert made.fits == (made.peak_nbytes <= 0.6 * given_resources.memory_limit + 1)
    else:
        assert made.fits
    state = statistic.array_nbytes(min(made.panel_width, made.n_features), source.kind, source.weighted)
    assert all(n > 0 for n in made.task_nbytes.values())
    assert max(made.task_nbytes.values()) >= state
    reading = next(iter(made.task_nbytes.values()))
    assert reading >= source.block_nbytes + source.import_nbytes


def test_refusals_say_what_helps() -> None:
    small = replace(CLUSTER, memory_limit=512 * MiB, spool=None)
    with pytest.raises(PlanError, match=r"or fewer threads, or name a folder that all workers reach \(spool="):
        plan(resources=small, n_features=10**9).check()
    with pytest.raises(PlanError) as caught:
        plan(resources=replace(small, spool="/spool", threads=1), block_nbytes=GiB).check()
    assert "spool=" not in str(caught.value)
    assert "threads" not in str(caught.value)
    assert "to spool a run" in str(caught.value) or "to fold a run" in str(caught.value)


@pytest.mark.parametrize("n_classes", [2, 100, 1000, 10_000])
@pytest.mark.parametrize("n_features", [10**6, 10**7, 10**8])
def test_many_classes_are_cut_as_finely_as_memory_asks_for(n_classes: int, n_features: int) -> None:
    """A whole state takes up to 8 TB; what a worker needs grows with the square root of the features only."""
    made = plan(ClassCounts(n_classes), replace(CLUSTER, workers=2, threads=1), n_features=n_features)
    buckets = -(-n_features // (1 << made.tile_shift)) * n_classes
    assert made.fits or max(made.task_nbytes.values()) < GiB // 2 + 200 * n_classes * math.sqrt(n_features)
    assert made.fits or n_classes * math.sqrt(n_features) > 10**7
    assert made.strategy == "dense" or buckets * 32 <= made.task_nbytes["spool a run"]


@given(st.integers(1, 10**9), st.integers(1, 10**5), st.integers(1, 1000))
def test_tiles_are_few_enough_to_sort_into(n_features: int, n_classes: int, panels: int) -> None:
    shift = tile_shift(n_features, n_classes, panels)
    assert 0 <= shift <= 30
    assert (n_features >> shift) * n_classes <= 4096 or shift == 30


@given(
    st.lists(st.integers(0, 10**7), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(0, 16),
)
def test_even_bounds_share_the_work(tiles: list[int], panels: int, shift: int) -> None:
    made = cut_into(panels, tiles, shift)
    n_features, width = made.n_features, made.panel_width
    bounds = even_bounds(made, np.array(tiles))
    assert bounds[0] == 0
    assert bounds[-1] == n_features
    assert all(a < b and a % (1 << shift) == 0 for a, b in itertools.pairwise(bounds))
    assert max(b - a for a, b in itertools.pairwise(bounds)) <= width
    assert len(bounds) - 1 <= 2 * (made.panels + made.resources.slots) + 1
    work = np.array(tiles) + COLUMN_WORK * (1 << shift)
    loads = [work[a >> shift : -(-b >> shift)].sum() for a, b in itertools.pairwise(bounds)]
    assert max(loads) <= work.sum() / made.panels + work.max()


def cut_into(panels: int, tiles: list[int], shift: int, workers: int = 8) -> Plan:
    """A plan of so many panels, for columns with so many tiles."""
    n_features = (len(tiles) << shift) - (1 if shift else 0)
    width = min(n_features, -(-len(tiles) // panels) << shift)
    resources = replace(CLUSTER, workers=workers, threads=1)
    return replace(plan(resources=resources), n_features=n_features, panel_width=width, tile_shift=shift)


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_one_heavy_tile_does_not_hold_the_others(workers: int) -> None:
    """Half of all entries are of the first few words: the worker that has them ends with the others."""
    tiles, shift = [20 * PANEL_WORK, *[PANEL_WORK // 10] * 150], 10
    made = cut_into(2 * workers, tiles, shift, workers)
    bounds = even_bounds(made, np.array(tiles))
    work = np.array(tiles) + COLUMN_WORK * (1 << shift)
    loads = [work[a >> shift : -(-b >> shift)].sum() + PANEL_WORK for a, b in itertools.pairwise(bounds)]
    free = [0.0] * workers
    for start, stop in folded_together(made, np.array(tiles), bounds):
        free[int(np.argmin(free))] += sum(loads[start:stop])
    assert max(free) <= max(max(loads), 1.1 * sum(loads) / workers)


def test_large_chunks_are_refused_with_how_small_they_have_to_be() -> None:
    rows = da.random.default_rng(0).random((10_000, 1000), chunks=(5000, 1000))
    y = np.arange(10_000) % 2
    resources = Resources(workers=2, threads=1, memory_limit=400 * MiB, remote=True)
    source = CollectionSource(rows, y)
    refused = make_plan(COUNTS, source, resources)
    with pytest.raises(PlanError, match=r"cut each into \d+ parts, with X.rechunk") as told:
        refused.check(source)
    found = re.search(r"into (\d+) parts", str(told.value))
    assert found is not None
    parts = int(found[1])
    fine = CollectionSource(rows.rechunk({0: 5000 // parts}), y)
    make_plan(COUNTS, fine, resources).check(fine)
    with pytest.raises(PlanError, match=r"X.rechunk"):
        nfs.SparseCentroid(k=2, engine=Small()).fit(rows, y)
    shipped = Planned(block_nbytes=4 * GiB)
    with pytest.raises(PlanError) as told:
        make_plan(COUNTS, shipped, CLUSTER).check(shipped)
    assert "rechunk" not in str(told.value)


class Small(nfs.SerialEngine):
    """An engine that has little memory."""

    @contextmanager
    def executor(self) -> Any:
        with super().executor() as executor:
            here = executor.resources

            def small(*args: Any, **keywords: Any) -> Resources:
                return replace(here(*args, **keywords), memory_limit=1, warm=0)

            executor.resources = small  # type: ignore[method-assign]
            yield executor
