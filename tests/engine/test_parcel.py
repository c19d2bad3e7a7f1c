"""A job is the same after its way, and nobody looks into it meanwhile."""

from __future__ import annotations

import pickle
from typing import Any

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.parcel import Parcel, packed, unpacked
from nfs_dask.engine.plan import Plan, make_plan
from nfs_dask.engine.tasks import Job
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.units import GiB


def job() -> Job:
    source = GeneratedCorpus(10**10, 10**5)
    plan = make_plan(ClassCounts(2), source, Resources(256, 1, GiB, remote=True))
    assert len(plan.runs) > 1000
    return Job(ClassCounts(2), source, plan, trusted=True)


def test_it_comes_as_it_was() -> None:
    sent = job()
    came = unpacked(packed(sent))
    assert (came.plan, came.statistic, came.trusted) == (sent.plan, sent.statistic, sent.trusted)
    assert came.source is not None and came.source.facts.n_rows == 10**10
    assert unpacked(sent) is sent


def test_who_passes_it_on_unpacks_no_runs(monkeypatch: Any) -> None:
    parcel = packed(job())

    def refused(self: Plan, state: Any) -> None:
        raise AssertionError("a plan was unpacked on the way")

    monkeypatch.setattr(Plan, "__setstate__", refused)
    again = pickle.loads(pickle.dumps(parcel))
    assert again == parcel and isinstance(again, Parcel)
    assert len(repr(again)) < 100
