"""A job on its way: packed once by the client, and unpacked by the tasks alone.

A scheduler unpacks the arguments of each task, packs them again for a worker, and keeps them for as long as the task.
Of a job those are all of its runs, which grow with the workers as tasks do: with 256 workers that took gigabytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from nfs_dask.engine.tasks import Job


@dataclass(frozen=True)
class Parcel:
    """What `unpacked` makes a job of."""

    content: bytes = field(repr=False)  # what Dask writes of a task that fails has no part of it


def packed(job: Job) -> Parcel:
    """A parcel with the job."""
    from distributed.protocol.pickle import dumps

    return Parcel(dumps(job))


def unpacked(job: Job | Parcel) -> Job:
    """The job, which may have come as it is."""
    from distributed.protocol.pickle import loads

    return cast(Job, loads(job.content)) if isinstance(job, Parcel) else job
