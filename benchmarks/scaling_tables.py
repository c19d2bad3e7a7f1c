"""The tables of `docs/scaling.md`, from what `scaling.py` has measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.engine.cost_model import TERMS, Costs, Hosts, Measured, PassWork, forecast
from nfs_dask.units import format_bytes, format_seconds

COMMAND = "python benchmarks/scaling.py"

Row = dict[str, Any]


def measured_of(row: Row) -> Measured:
    return Measured(PassWork(**row["work"]), Hosts(**row["hosts"]), row["phases"])


def took(row: Row) -> float:
    return sum(row["phases"].values())


def fastest(rows: Iterable[Row], size: str) -> list[Row]:
    """The fastest of the passes of a kind, of those that are small, or large: others had company, or new memory."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row["case"], row["work"]["panels"], row["hosts"]["workers"], row["hosts"]["network"])
        if row["case"].endswith(size) and (key not in best or took(row) < took(best[key])):
            best[key] = row
    return sorted(best.values(), key=_order)


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
    return table([*head.split("|"), "workers' processors, s"], map(line, fastest(found["far"], "small")))


def scheduler_table(found: Row, costs: Costs) -> str:
    def line(row: Row) -> list[Any]:
        kind = "Dask's" if row["shipped"] else "a store's"
        seconds = [f"{row.get(who, 0):.2f}" for who in ("scheduler", "client", "beats")]
        each = 1000 * (row["scheduler"] + row["client"]) / row["tasks"]
        predicted = sum(
            costs.seconds[name] * n for name, n in (("fixed", 1), ("task", row["tasks"]), ("worker", row["workers"]))
        )
        sizes = [format_bytes(row[f"{who}_nbytes"]) for who in ("scheduler", "client", "plan")]
        counts = [f"{row[what]:,}" for what in ("workers", "blocks", "tasks")]
        return [kind, *counts, *seconds, f"{each:.1f} ms", f"{predicted:.2f}", *sizes]

    head = "blocks are|workers|blocks|tasks|scheduler, s|client, s|beats taken off, s|both, a task|by the model, s"
    return table([*head.split("|"), "scheduler's memory", "client's memory", "plan"], map(line, found["scheduler"]))


def memory_table(found: Row, costs: Costs) -> str:
    rows = ([row["memory"], f"{row['seconds']:.2f}", f"{row['processor']:.2f}"] for row in found["memory"])
    return table(["memory", "seconds for a GiB", "of the processor"], rows)


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
    from nfs_dask.engine.dry_run import DryRunEngine, HypotheticalSource

    dataset = open_dataset(found["store"])
    grown = Dataset(HypotheticalSource(dataset.source, 10**10, 10**8), dataset.location)

    def line(nodes: int, gbit: float, latency: float) -> list[Any]:
        resources = Resources(nodes, 1, 4 << 30, 350 << 20, "/shared", True)
        work = grown.plan(grown.class_counts(), DryRunEngine(resources)).work
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
    "memory": (memory_table, "memory"),
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
