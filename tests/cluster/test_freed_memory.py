"""Memory that tasks free: kept between them, given back after them. Each case is a process of its own."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys

import pytest

from nfs_dask.cluster.worker_settings import TRIM

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's allocator that is told")

_MEASURES = """
import resource, numpy as np, psutil
from nfs_dask.cluster import freed_memory

def pages_touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(1 << 20, np.uint8)  # less than a huge page
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def held():
    return psutil.Process().memory_info().rss >> 20
"""


def said(script: str, **environment: str) -> list[int]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURES + script], env=known | environment, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_tasks_use_what_others_have_freed() -> None:
    script = """
print(pages_touched())
for _ in range(2):
    with freed_memory.freed_memory_kept():
        print(pages_touched())
freed_memory.give_back_freed()
print(pages_touched())
"""
    before, _, within, after = said(script, **{TRIM: "65536"})
    pages = 100 * (1 << 20) // resource.getpagesize()
    assert within < pages / 10 < pages * 0.8 < min(before, after)


def test_it_is_given_back_when_no_task_follows() -> None:
    script = """
import time
freed_memory.IDLE_SECONDS = 0.05
before = held()
with freed_memory.freed_memory_kept():
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(200)]
    kept = arrays[::20]
    del arrays
    print(held() - before)
    freed_memory.give_back_freed()
    print(held() - before)
deadline = time.monotonic() + 30
while held() - before > 60 and time.monotonic() < deadline:
    time.sleep(0.02)
print(held() - before)
"""
    free, asked_in_a_task, given_back = said(script, **{TRIM: "65536"})
    assert free > 150 and asked_in_a_task > 150  # MiB, of which ten are still in use
    assert given_back < 60


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {TRIM: "65536", "MALLOC_MMAP_THRESHOLD_": "131072"},
        {TRIM: "65536", "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"},
    ],
)
def test_what_somebody_chose_is_left_alone(environment: dict[str, str]) -> None:
    script = """
told = []
freed_memory._set_thresholds = lambda *thresholds: told.append(thresholds)
with freed_memory.freed_memory_kept():
    freed_memory.give_back_freed()
print(len(told))
"""
    assert said(script, **environment) == [0]


def test_a_process_that_only_tells_its_workers_is_left_alone() -> None:
    """As a user's own process is, after Dask's nannies began workers in it."""
    script = f"""
import os
os.environ[{TRIM!r}] = "65536"
told = []
freed_memory._set_thresholds = lambda *thresholds: told.append(thresholds)
with freed_memory.freed_memory_kept():
    freed_memory.give_back_freed()
print(len(told))
"""
    assert said(script) == [0]
