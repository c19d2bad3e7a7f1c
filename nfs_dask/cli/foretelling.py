"""Options of ``plan`` for data and hosts that are not there yet, and what is foretold of them in words."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, Size
from nfs_dask.cli.output import show_line
from nfs_dask.errors import InputError
from nfs_dask.units import format_bytes, format_seconds, parse_bandwidth

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.cost_model import Costs, Forecast, Hosts
    from nfs_dask.engine.engine import Engine
    from nfs_dask.engine.plan import Plan, Schedule
    from nfs_dask.sources.source import Source

REQUEST_SECONDS = 0.02  # until an object store answers, unless it is said; a disk answers at once
WARM_NBYTES = 350 << 20  # of a worker that nobody has measured: what those of benchmarks/scaling.py took


class Bandwidth(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Bits per second, such as 10Gbit."""

    name = "bandwidth"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_bandwidth(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


class Many(click.ParamType):  # type: ignore[type-arg]
    """A whole number of one or more, which may be written as 1e10."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not (1 <= number < float("inf")) or number % 1:
            self.fail(f"{value!r} is not a whole number of one or more; give one such as 1000000 or 1e10", param, ctx)
        return int(number)


@dataclass(frozen=True)
class Foretelling:
    """What to foretell a fit for. Nothing given: for what is there."""

    rows: int | None = None
    features: int | None = None
    network: float | None = None
    store_rate: int | None = None
    latency: float | None = None
    price: float | None = None
    costs: str | None = None
    calibrate: str | None = None

    def check(self) -> None:
        """Refuse combinations that would not do what they say."""
        if self.calibrate is not None and self != Foretelling(calibrate=self.calibrate, network=self.network):
            raise click.UsageError(
                "--calibrate measures what is there; give --network with it, and the other options of a forecast, with "
                "--costs, to a command of its own"
            )

    def check_absent(self, option: str) -> None:
        """Refuse options of a forecast beside one that is about what is there."""
        if self != Foretelling():
            raise click.UsageError(f"{option} is about data that are there; give options of a forecast without it")

    @property
    def wanted(self) -> bool:
        return self.calibrate is None and self != Foretelling()

    @contextmanager
    def engine(self, cluster: ClusterOptions, data: Source) -> Iterator[Engine]:
        """Where a fit would run. For a forecast no worker is started: they are as described."""
        from nfs_dask.cluster.resources import Resources
        from nfs_dask.engine.dry_run import DryRunEngine

        if not self.wanted or cluster.scheduler is not None:
            with cluster.engine(data) as engine:
                yield engine
            return
        yield DryRunEngine(
            Resources(
                workers=cluster.workers or 1,
                threads=cluster.threads or 1,
                memory_limit=cluster.memory_limit or 0,
                warm=WARM_NBYTES,
                spool="a folder that all workers reach",
                remote=True,
            )
        )

    def measure(self, cluster: ClusterOptions, dataset: Dataset) -> Costs:
        """Costs of the cluster, written to the file that was named."""
        from nfs_dask.cluster.finding import current_client
        from nfs_dask.engine.calibrate import calibrate
        from nfs_dask.engine.cost_model import Hosts

        assert self.calibrate is not None
        statistic = dataset.class_counts()
        with cluster.engine(dataset.source) as engine:
            client = current_client()
            if client is None:
                raise click.UsageError("--calibrate needs workers; say which with --scheduler ADDRESS or --workers N")
            r = engine.plan(statistic, dataset.source, beside=dataset.beside).resources
            hosts = Hosts(r.workers, r.slots / r.workers, network=self.network)
            costs = calibrate(client, statistic, dataset.source, hosts, dataset.beside)
        costs.save(self.calibrate)
        return costs

    def data(self, dataset: Dataset) -> Dataset:
        """The data with as many rows and features as were asked for."""
        from nfs_dask.dataset import Dataset
        from nfs_dask.engine.dry_run import HypotheticalSource

        if self.rows is None and self.features is None:
            return dataset
        return Dataset(
            HypotheticalSource(dataset.source, self.rows, self.features), dataset.location, reuse=dataset.reuse
        )

    def forecast(self, plan: Plan | Schedule, there: Dataset, solved: bool) -> Forecast:
        """Of all passes of a plan, and of choosing features in the end; ``there`` are the data as they are."""
        from nfs_dask.engine.cost_model import forecast
        from nfs_dask.engine.plan import Plan
        from nfs_dask.files.folder import Folder

        passes = (plan,) if isinstance(plan, Plan) else plan.passes
        remote = there.location is not None and Folder(there.location).remote
        hosts = self._hosts(passes[0], remote)
        return forecast([one.work for one in passes], hosts, self._costs(), solved=solved)

    def _hosts(self, plan: Plan, remote: bool) -> Hosts:
        from nfs_dask.engine.cost_model import Hosts

        latency = self.latency if self.latency is not None else REQUEST_SECONDS if remote else 0.0
        far = remote or self.network is not None or self.store_rate is not None or self.latency is not None
        r = plan.resources
        return Hosts(r.workers, r.slots / r.workers, None, self.network, far, self.store_rate, latency)

    def _costs(self) -> Costs:
        from nfs_dask.engine.cost_model import Costs, usual_costs

        return usual_costs() if self.costs is None else Costs.load(self.costs)


_OPTIONS = (
    click.option("--rows", type=Many(), metavar="N", help="Foretell a fit to so many documents, such as 1e10."),
    click.option("--features", type=Many(), metavar="N", help="And to so many features."),
    click.option("--network", type=Bandwidth(), metavar="SPEED", help="Of each host's link, such as 10Gbit."),
    click.option("--store-rate", type=Size(), metavar="SIZE", help="A second, that the store gives to all workers."),
    click.option(
        "--latency",
        type=click.FloatRange(0),
        metavar="SECONDS",
        help=f"Until the store answers a request; {REQUEST_SECONDS} for a URL.",
    ),
    click.option("--price", type=click.FloatRange(0), metavar="AMOUNT", help="Of an hour of one worker."),
    click.option(
        "--costs",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="That --calibrate has written; otherwise those of the machine of the benchmarks.",
    ),
    click.option(
        "--calibrate",
        type=click.Path(dir_okay=False, writable=True),
        metavar="FILE",
        help="Measure first: small passes over the first blocks, for a minute at most; write costs to FILE.",
    ),
)


def foretelling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a forecast; it receives them as one argument, ``foretelling``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        foretelling = Foretelling(**{f.name: arguments.pop(f.name) for f in fields(Foretelling)})
        foretelling.check()
        return command(foretelling=foretelling, **arguments)

    made: Callable[..., Any] = wrapped
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def values_of(found: Forecast, wanted: Foretelling) -> dict[str, Any]:
    """A forecast, as JSON values."""
    return {
        "seconds": found.seconds,
        "phases": found.phases,
        "terms": dict(found.terms),
        "bottleneck": found.bottleneck,
        "moved_nbytes": found.moved_nbytes,
        "scheduler_nbytes": found.scheduler_nbytes,
        "worker_hours": found.worker_hours,
        "cost": None if wanted.price is None else wanted.price * found.worker_hours,
        "costs": {"command": found.costs.command, "machine": found.costs.machine},
    }


def show_costs(costs: Costs, path: str | None, console: Console) -> None:
    """What a calibration has found."""
    from nfs_dask.engine.cost_model import TERMS

    for name, cost in costs.seconds.items():
        show_line(f"{name:<9} {cost:9.3g} s   of {TERMS[name].counts}", console, indent=10)
    show_line(f"Written to {path}; give it with --costs", console)


def show_forecast(found: Forecast, wanted: Foretelling, dataset: Dataset, console: Console) -> None:
    for name, value in _lines(found, wanted, dataset):
        show_line(f"{name:<9} {value}", console, indent=10)


def _lines(found: Forecast, wanted: Foretelling, dataset: Dataset) -> Iterator[tuple[str, str]]:
    from nfs_dask.engine.cost_model import PHASES, TERMS

    hosts = found.hosts
    yield "Foretold", "not measured: " + _data(wanted, dataset)
    yield "Time", f"about {format_seconds(found.seconds)} on {hosts.workers:,} worker(s) x {hosts.threads:g} thread(s)"
    for phase, seconds in found.phases.items():
        yield "", f"{format_seconds(seconds):>11}  {phase}: {PHASES[phase]}"
    yield "Limit", f"{TERMS[found.bottleneck].counts}: {format_seconds(found.terms[found.bottleneck])}"
    yield "Moves", f"{format_bytes(found.moved_nbytes)} over links"
    yield "Scheduler", f"about {format_bytes(found.scheduler_nbytes)}, one process, {found.tasks:,} tasks"
    cost = "" if wanted.price is None else f", {wanted.price * found.worker_hours:,.2f} at {wanted.price:g} an hour"
    yield "Workers", f"{found.worker_hours:,.2f} hours of one{cost}"
    yield "Assumes", "; ".join(_assumptions(found))


def _data(wanted: Foretelling, dataset: Dataset) -> str:
    source = dataset.source
    rows = f"{wanted.rows or source.n_rows:,} rows (there are {source.n_rows:,})"
    per_row = source.about_entries / max(1, source.n_rows)
    features = "as many as now" if wanted.features is None else f"{wanted.features:,} (there are {source.n_features:,})"
    return f"{rows} of {per_row:.3g} entries each, as now; features: {features}"


def _assumptions(found: Forecast) -> Iterator[str]:
    hosts = found.hosts
    yield "a core for each thread"
    if hosts.network is None:
        yield "links take no time (give --network)"
    else:
        yield f"links of {hosts.network / 1e9:g} Gbit/s"
    if hosts.far:
        rate = "no limit of its own" if hosts.store is None else f"{format_bytes(hosts.store)} a second for all"
        yield f"data and spool behind them in a store of {rate}, which answers in {1000 * hosts.latency:g} ms"
    yield f"costs by {found.costs.command} on {found.costs.machine}"
