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
from typing import Any

import scheduler_cost
from cases import store_of
from hosts import PORT, cluster
from watched import STORES

from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.engine.costs import Costs, Measured, fit, least_squares
from nfs_dask.engine.forecast import forecast
from nfs_dask.engine.work_units import TERMS, Hosts, PassWork
from nfs_dask.units import format_bytes, format_seconds

ROOT = Path(__file__).parent.parent
RESULTS, COSTS, PAGE = (
    ROOT / name for name in ("benchmarks/results/scaling.json", "nfs_dask/engine/costs.json", "docs/scaling.md")
)
COMMAND = "python benchmarks/scaling.py"
WORKERS = (16, 8, 4, 2)  # descending, as workers are retired between
SPEEDS = (1, 10, None)  # Gbit/s
FITTED_WORKERS, FITTED_SPEEDS = (2, 4), (1, None)
REPEATS = 2  # of each pass, of which the faster one counts: the other had company, or memory that was new

Row = dict[str, Any]


PARTS: dict[str, Callable[[Path], Iterable[Row]]] = {
    "passes": lambda data: _passes(data),
    "far": lambda data: _far(data),
    "solved": lambda data: _solved(data),
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
                    options = ["--data", data, "--workers", workers, "--size", size, "--repeats", REPEATS, *speed]
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


# From what was measured to costs


def measured_of(row: Row) -> Measured:
    return Measured(PassWork(**row["work"]), Hosts(**row["hosts"]), row["phases"])


def took(row: Row) -> float:
    return sum(row["phases"].values())


def fastest(rows: Iterable[Row], size: str) -> list[Row]:
    """The faster of the passes of a kind, of those that are small, or large."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row["case"], row["work"]["panels"], row["hosts"]["workers"], row["hosts"]["network"])
        if row["case"].endswith(size) and (key not in best or took(row) < took(best[key])):
            best[key] = row
    return sorted(best.values(), key=_order)


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
    return fit([measured_of(row) for row in fastest(found["passes"], "small")], start, given=("task", "worker", "solve"))


# Tables

NAMES = {("2m", "dense"): "2 million, whole states", ("12m", "dense"): "12 million, whole states"}


def name_of(row: Row) -> str:
    features, work = row["case"].split("-")[0], row["work"]
    if work["strategy"] == "dense":
        return NAMES[features, "dense"]
    return f"{features.removesuffix('m')} million, {work['panels']} panels"


def speed_of(row: Row) -> str:
    return "no limit" if row["hosts"]["network"] is None else f"{row['hosts']['network'] / 1e9:g}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def measured_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        phases, used = row["phases"], row["used"]
        first, second = (phases.get(a, 0) + phases.get(b, 0) for a, b in (("fold", "spool"), ("merge", "panels")))
        moved = used["workers"]["sent"] + used["scheduler"]["sent"]
        processors = [f"{used[who]['processor']:.1f}" for who in ("workers", "scheduler", "client")]
        wire = forecast_of(row, costs).terms.get("wire", 0)
        seconds = [f"{s:.2f}" for s in (took(row), first, second, wire)]
        return [name_of(row), row["hosts"]["workers"], speed_of(row), *seconds, format_bytes(moved), *processors]

    rows = fastest(found["passes"], "large")
    head = "features|workers|Gbit/s|seconds|fold or spool|merge or panels|of it on the wire, by the model|over links"
    return table([*head.split("|"), "workers' processors, s", "scheduler's", "client's"], map(line, rows))


def _order(row: Row) -> tuple[Any, ...]:
    work, hosts = row["work"], row["hosts"]
    return work["n_features"], work["strategy"], work["panels"] > 100, hosts["workers"], hosts["network"] or 0


def forecast_of(row: Row, costs: Costs) -> Any:
    one = measured_of(row)
    return forecast([one.work], one.hosts, costs)


def predicted_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        predicted = forecast_of(row, costs).seconds
        entries = f"{row['work']['entries'] / 1e6:.0f} million"
        seconds = [f"{predicted:.2f}", f"{took(row):.2f}", f"{100 * (predicted / took(row) - 1):+.0f} %"]
        return [name_of(row), entries, row["hosts"]["workers"], speed_of(row), *seconds]

    rows = fastest(found["passes"], "large")
    errors = [forecast_of(row, costs).seconds / took(row) - 1 for row in rows]
    within = sum(abs(error) <= 0.2 for error in errors)
    worst = max(errors, key=abs)
    median = sorted(map(abs, errors))[len(errors) // 2]
    said = (
        f"Of {len(rows)} passes that it has not seen, {within} are predicted within 20 %; the median error is "
        f"{100 * median:.0f} %, the largest {100 * worst:+.0f} %.\n\n"
    )
    return said + table("features|entries|workers|Gbit/s|predicted|measured|error".split("|"), map(line, rows))


def far_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        told, used = forecast_of(row, costs), row["used"]["workers"]
        waiting = sum(told.terms.get(name, 0) for name in ("request", "piece"))
        links = sum(told.terms.get(name, 0) for name in ("load", "shuffle", "wire"))
        seconds = [f"{s:.2f}" for s in (waiting, links, told.seconds, took(row))]
        error = f"{100 * (told.seconds / took(row) - 1):+.0f} %"
        latency = f"{1000 * row['hosts']['latency']:.1f} ms"
        moved = format_bytes(used["sent"] + used["received"])
        return [
            name_of(row),
            latency,
            *seconds,
            error,
            format_bytes(told.moved_nbytes),
            moved,
            f"{used['processor']:.1f}",
        ]

    head = "features|latency|waiting, s|links, s|predicted, s|measured, s|error|bytes predicted|to and from workers"
    return table([*head.split("|"), "workers' processors, s"], map(line, found["far"]))


def scheduler_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        kind = "Dask's" if row["shipped"] else "a store's"
        seconds = [f"{row[who]:.2f}" for who in ("scheduler", "client", "beats")]
        each = 1000 * (row["scheduler"] + row["client"]) / row["tasks"]
        predicted = sum(
            costs.seconds[name] * n for name, n in (("fixed", 1), ("task", row["tasks"]), ("worker", row["workers"]))
        )
        sizes = [format_bytes(row[f"{who}_nbytes"]) for who in ("scheduler", "client", "plan")]
        counts = [f"{row[what]:,}" for what in ("workers", "blocks", "tasks")]
        return [kind, *counts, *seconds, f"{each:.1f} ms", f"{predicted:.2f}", *sizes]

    head = "blocks are|workers|blocks|tasks|scheduler, s|client, s|beats of workers, s|both, a task|by the model, s"
    return table([*head.split("|"), "scheduler's memory", "client's memory", "plan"], map(line, found["scheduler"]))


def solved_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        predicted = costs.seconds["solve"] * row["n_features"]
        error = f"{100 * (predicted / row['solve'] - 1):+.0f} %"
        return [f"{row['n_features']:,}", f"{predicted:.2f}", f"{row['solve']:.2f}", error]

    rows = [row for row in found["solved"] if row["n_features"] == 10**8 and row["case"].endswith("large")]
    return table(["features", "by the model, s", "measured, s", "error"], map(line, rows))


def costs_table(found: Row, costs: Costs) -> str:
    lines = ([name, TERMS[name].counts, f"{s:.3g} s"] for name, s in costs.seconds.items())
    return f"Known from: {costs.command}; {costs.machine}.\n\n" + table(["term", "counts", "a unit costs"], lines)


def forecast_table(found: Row, costs: Costs) -> str:
    """Ten billion documents and 10^8 features, on 100 and 1,000 nodes."""
    from nfs_dask.cluster.resources import Resources
    from nfs_dask.engine.foretell import Foreteller, Foretold

    dataset = open_dataset(found["store"])
    grown = Dataset(Foretold(dataset.source, 10**10, 10**8), dataset.location)

    def line(nodes: int, gbit: float, latency: float) -> list[Any]:
        resources = Resources(nodes, 1, 4 << 30, 350 << 20, "/shared", True)
        work = grown.plan(grown.class_counts(), Foreteller(resources)).work
        told = forecast([work], Hosts(nodes, 1, None, gbit * 1e9, True, None, latency), costs, solved=True)
        limit = f"{told.bottleneck}, {format_seconds(told.terms[told.bottleneck])}"
        where = "a shared disk" if latency == 0 else f"an object store, {1000 * latency:.0f} ms"
        moved = format_bytes(told.moved_nbytes)
        return [
            f"{nodes:,}", gbit, where, format_seconds(told.seconds), limit, moved, f"{told.tasks:,}",
            format_bytes(told.scheduler_nbytes), f"{told.worker_hours:,.1f}",
        ]  # fmt: skip

    ways = [(n, gbit, latency) for n in (100, 1000) for gbit in (1, 10) for latency in (0.0, 0.02)]
    head = "nodes|Gbit/s|data and spool on|time|first limit|over links|tasks|scheduler's memory|worker hours"
    return table(head.split("|"), (line(*way) for way in ways))


TABLES: dict[str, tuple[Callable[[Row, Costs], str], str | None]] = {  # and the part that is shown, if any
    "measured": (measured_table, "passes"),
    "predicted": (predicted_table, "passes"),
    "far": (far_table, "far"),
    "scheduler": (scheduler_table, "scheduler"),
    "solved": (solved_table, "solved"),
    "costs": (costs_table, None),
    "forecast": (forecast_table, None),
}
MISSING = "Not measured yet; the command writes it here."


def rewrite(page: str, found: Row, costs: Costs) -> str:
    """The page with each table between its two comments made anew."""
    for name, (make, part) in TABLES.items():
        content = make(found, costs) if part is None or part in found else MISSING
        begin, end = f"<!-- {name}: made by {COMMAND} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{content}\n\n{end}{after}"
    return page


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
