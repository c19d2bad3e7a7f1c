"""What memory costs that a process has not had before: at once after it was let go of, and after a while.

    python benchmarks/fresh_memory.py

Where a hypervisor takes back what a machine does not use (free page reporting, balloons), memory that has not been used
for seconds has to come from there, page by page. That is nothing that a pass does, but it is in what passes take.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

NBYTES = 1 << 30
PAGE = 4096
WHILE = 5.0  # seconds; hypervisors are told of free memory every two


def touch() -> dict[str, float]:
    """Seconds, and those of the processor, for a gibibyte."""
    started, before = time.perf_counter(), time.process_time()
    np.empty(NBYTES, np.uint8)[::PAGE] = 1
    return {"seconds": time.perf_counter() - started, "processor": time.process_time() - before}


def measure() -> list[dict[str, Any]]:
    touch()
    again = touch()
    time.sleep(WHILE)
    return [{"memory": "used just before", **again}, {"memory": f"not used for {WHILE:g} s", **touch()}]


if __name__ == "__main__":
    for row in measure():
        print(json.dumps(row))
