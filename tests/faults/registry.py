"""All rows, in the order of the page."""

from __future__ import annotations

from tests.faults import disks, networks, objects, workers, writers

ROWS = [*workers.ROWS, *networks.ROWS, *objects.ROWS, *disks.ROWS, *writers.ROWS]
