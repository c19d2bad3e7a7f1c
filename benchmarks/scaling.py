"""Scaling, measured on hosts that share this machine and modelled beyond it. Needs root; takes about eight minutes.

    python benchmarks/scaling.py --data DIR      measures, fits, and rewrites costs and tables
    python benchmarks/scaling.py --parts far     measures this part again, and does the same
    python benchmarks/scaling.py --parts         measures nothing, and does the same

Hosts are network namespaces on links of 1 and 10 Gbit/s (`hosts.py`); 2 to 16 workers read stores on a disk that they
share (`watched.py`). Small passes of 2 and 4 workers, over links of 1 Gbit/s and without a limit, are what the model is
fitted to. It has to predict the large ones: of more data, of more workers, and over the other links. What one scheduler
takes comes from `scheduler_cost.py`.

What was measured goes to `results/scaling.json`, the costs to `nfs_dask/engine/costs.json`, and the tables to
`docs/scaling.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import fresh_memory
import scheduler_cost
from cases import store_of
from hosts import PORT, cluster
from scaling_tables import COMMAND, Row, fastest, measured_of, rewrite
from watched import STORES

from nfs_dask.engine.cost_model import TERMS, Costs, fit, least_squares
from nfs_dask.units import format_seconds

ROOT = Path(__file__).parent.parent
RESULTS, COSTS, PAGE = (
    ROOT / name for name in ("benchmarks/results/scaling.json", "nfs_dask/engine/costs.json", "docs/scaling.md")
)
WORKERS = (16, 8, 4, 2)  # descending, as workers are retired between
SPEEDS = (1, 10, None)  # Gbit/s
FITTED_WORKERS, FITTED_SPEEDS = (2, 4), (1, None)

PARTS: dict[str, Callable[[Path], Iterable[Row]]] = {
    "passes": lambda data: _passes(data),
    "far": lambda data: _far(data),
    "solved": lambda data: _solved(data),
    "memory": lambda _: fresh_memory.measure(),
    "scheduler": lambda _: scheduler_cost.measure([16, 64, 128, 256], [10_000, 1_000_000], [1_000, 4_000]),
}


def measure(data: Path, parts: Sequence[str]) -> None:
    """What the tables are made of; each part is kept as soon as it is there."""
    for name, case in STORES.items():
        store_of(case, data / f"{name}.zarr")
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in parts:
        started = time.monotonic()
        found[part] = list(PARTS[part](data))
        found["machine"] = f"{os.cpu_count()} shared cores of a virtual machine ({_processor()})"
        found.setdefault("seconds", {})[part] = round(time.monotonic() - started)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found) + "\n")
        print(f"{part}: measured in {format_seconds(found['seconds'][part])}", flush=True)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _passes(data: Path) -> Iterator[Row]:
    with cluster(max(WORKERS), data / "logs") as hosts:
        for workers in WORKERS:
            for gbit in SPEEDS:
                small = workers in FITTED_WORKERS and gbit in FITTED_SPEEDS
                sizes = ["small"] * small + ["large"] * (gbit is not None)
                hosts.limit(gbit)
                for size in sizes:
                    speed = [] if gbit is None else ["--gbit", gbit]
                    options = ["--data", data, "--workers", workers, "--size", size, *speed]
                    address = f"tcp://{hosts.address('scheduler')}:{PORT}"
                    text = hosts.run("client", sys.executable, ROOT / "benchmarks/watched.py", address, *options)
                    yield from map(json.loads, text.splitlines())


def _far(data: Path) -> Iterator[Row]:
    """The same from an object store, and with spool files in it."""
    with cluster(2, data / "logs", served=data) as hosts:
        hosts.limit(1)
        options = ["--workers", 2, "--gbit", 1, "--size", "small", "--url", f"s3://{data.name}"]
        address = f"tcp://{hosts.address('scheduler')}:{PORT}"
        text = hosts.run("client", sys.executable, ROOT / "benchmarks/watched.py", address, *options)
        yield from map(json.loads, text.splitlines())


def _solved(data: Path) -> Iterator[Row]:
    with cluster(0, data / "logs") as hosts:
        text = hosts.run("client", sys.executable, ROOT / "benchmarks/watched.py", "--solve", "--data", data)
        yield from map(json.loads, text.splitlines())


def costs_of(found: Row) -> Costs:
    """One scheduler and one client by their processor time, the rest by the seconds of small passes."""
    many = [row for row in found["scheduler"] if row["workers"] < 256 and row["tasks"] < 2000]
    units = [{"start": 1.0, "task": row["tasks"], "worker": row["workers"]} for row in many]
    busy = [row["scheduler"] + row["client"] for row in many]
    prices = least_squares([(s, s, u) for s, u in zip(busy, units, strict=True)], ["start", "task", "worker"])
    held = [row["scheduler_nbytes"] for row in many]
    nbytes = least_squares([(n, n, u) for n, u in zip(held, units, strict=True)], ["start", "task", "worker"])
    small = [row for row in found["solved"] if row["n_features"] < 10**8]
    solve = least_squares([(row["solve"], row["solve"], {"solve": row["n_features"]}) for row in small], ["solve"])
    known = dict.fromkeys((name for name, term in TERMS.items() if term.fitted), 0.0) | prices | solve
    known["fixed"] = known.pop("start")
    memory = {"fixed": nbytes.pop("start"), **nbytes}
    start = Costs(known, memory, COMMAND, found["machine"])
    return fit(
        [measured_of(row) for row in fastest(found["passes"], "small")], start, given=("task", "worker", "solve")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS), help="to measure; none: tables")
    options = parser.parse_args()
    measure(options.data.resolve(), options.parts)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if {"passes", "solved", "scheduler"} <= found.keys():
        costs_of(found).save(COSTS)
    found["store"] = str(options.data / "100m-large.zarr")
    PAGE.write_text(rewrite(PAGE.read_text(), found, Costs.load(COSTS)))
    parts = [part for part in PARTS if part in found]
    print(f"{PAGE.name} is written from {', '.join(parts) or 'costs alone'}")


if __name__ == "__main__":
    main()
