"""Looks at the machines that a pass would run on, and says what would go wrong before it does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nfs_dask.cluster.addresses import is_encrypted, is_loopback
from nfs_dask.cluster.finding import ANSWER_SECONDS, ask_scheduler, ask_workers, scheduler_info, silent_workers
from nfs_dask.cluster.gateway import is_of_gateway
from nfs_dask.cluster.worker_settings import ProcessSettings, notes_on, settings_of_process
from nfs_dask.errors import ClusterError, NfsDaskError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.units import format_bytes

# What states, tasks and results are made of: a difference gives wrong or no answers.
MUST_AGREE = (
    "python",
    "nfs-dask",
    "dask",
    "distributed",
    "cloudpickle",
    "msgpack",
    "toolz",
    "numpy",
    "scipy",
    "numba",
    "zarr",
)
# What may differ without harm, but is worth knowing when something is odd.
MAY_DIFFER = ("lz4", "numcodecs", "pandas", "pyarrow", "scikit-learn", "sparse", "tornado")
SIGHT_SECONDS = 15.0  # that a worker may take to look at a store, for which it may import libraries
_INSTALLED = [name for name in (*MUST_AGREE, *MAY_DIFFER) if name != "python"]  # whose version Dask always tells


@dataclass(frozen=True)
class Machine:
    """One process of the cluster, or the client."""

    role: str  # "client", "scheduler" or "worker"
    address: str
    versions: Mapping[str, str | None]  # None: not installed
    threads: int | None = None
    memory_limit: int | None = None  # bytes; 0: unlimited; None: not asked

    @property
    def name(self) -> str:
        return self.role if self.role != "worker" else f"worker {self.address}"


@dataclass(frozen=True)
class Difference:
    """A package whose version is not the client's everywhere."""

    package: str
    client: str | None
    others: Mapping[str, str | None]  # version by node, for those that differ

    def __str__(self) -> str:
        found: dict[str | None, list[str]] = {}
        for node, version in self.others.items():
            found.setdefault(version, []).append(node)
        there = "; ".join(f"{version or 'missing'} on {_some(nodes)}" for version, nodes in found.items())
        return f"{self.package} is {self.client or 'missing'} on the client, but {there}"


@dataclass
class Report:
    """What was found. Problems stop a pass, or make its answer doubtful; notes are worth knowing."""

    nodes: list[Machine]
    encrypted: bool | None = None  # None: no cluster was asked about
    gateway: bool = False  # whether a Dask Gateway made the cluster
    store: str | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "healthy": self.healthy}


def compare_versions(
    client: Machine, others: Sequence[Machine], packages: Sequence[str] = MUST_AGREE + MAY_DIFFER
) -> list[Difference]:
    """The packages, in order, that are not the same on all nodes.

    >>> client = Machine("client", "", {"numpy": "2.4.6"})
    >>> worker = Machine("worker", "tcp://10.0.0.2:4000", {"numpy": "2.2.0"})
    >>> print(*compare_versions(client, [worker], ["numpy"]))
    numpy is 2.4.6 on the client, but 2.2.0 on worker tcp://10.0.0.2:4000
    """
    found = []
    for package in packages:
        mine = client.versions.get(package)
        differing = {node.name: node.versions.get(package) for node in others if node.versions.get(package) != mine}
        if differing:
            found.append(Difference(package, mine, differing))
    return found


def examine(client: Any = None, store: str | None = None, *, settings: bool = False) -> Report:
    """Look at this machine, at the cluster of a ``distributed.Client`` if one is given, and at who reaches a store.

    With ``settings`` also at what workers are set to.
    """
    if client is None:
        report = Report([_local_node()], store=store)
        if store is not None:
            _judge_sight(report, {"client": _sight(store)})
        return report
    nodes, address = _ask(client)
    report = Report(nodes, encrypted=is_encrypted(address), gateway=is_of_gateway(client), store=store)
    judge_versions(report)
    _judge_workers(report)
    if settings:
        _judge_settings(report, client)
    _judge_encryption(report, address)
    if store is not None:
        _judge_sight(report, _sights(client, store, report))
    report.notes += map(str, silent_workers(client, ANSWER_SECONDS))
    return report


def _ask(client: Any) -> tuple[list[Machine], str]:
    """All nodes, the client first, and the address of the scheduler."""
    from distributed.versions import get_versions

    try:
        info = scheduler_info(client)
        of_scheduler = ask_scheduler(client, get_versions, _INSTALLED)
        of_workers = ask_workers(client, info["workers"], get_versions, _INSTALLED)
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the scheduler does not answer ({_first_line(error)}); see that it is running") from error
    nodes = [
        Machine("client", "", _packages(get_versions(packages=_INSTALLED))),
        Machine("scheduler", info["address"], _packages(of_scheduler)),
    ]
    for address, worker in sorted(info["workers"].items()):
        packages = _packages(of_workers.get(address))
        nodes.append(Machine("worker", address, packages, worker["nthreads"], worker["memory_limit"]))
    return nodes, str(info["address"])


def _packages(answer: Any) -> dict[str, str | None]:
    """The versions in a node's answer; one that left while it was asked has none."""
    if not isinstance(answer, Mapping):
        return {}
    packages = answer["packages"]
    return {name: packages.get(name) for name in (*MUST_AGREE, *MAY_DIFFER)}


def _local_node() -> Machine:
    from dask.system import cpu_count
    from distributed.system import MEMORY_LIMIT
    from distributed.versions import get_versions

    packages = _packages(get_versions(packages=_INSTALLED))
    return Machine("client", "", packages, cpu_count(), int(MEMORY_LIMIT))


def judge_versions(report: Report) -> None:
    """Add what the versions of a report's nodes mean: problems, or notes where a difference does no harm."""
    client, *others = report.nodes
    answered = [node for node in others if node.versions]
    report.notes += [f"{node.name} did not say its versions" for node in others if not node.versions]
    remedy = "install the same version everywhere"
    if report.gateway:
        remedy = "make a cluster of the environment or image of this session (Gateway().cluster_options() lists them)"
    for difference in compare_versions(client, answered):
        versions = [difference.client, *difference.others.values()]
        same_minor = len({tuple((version or "").split(".")[:2]) for version in versions}) == 1
        if difference.package in MAY_DIFFER or (difference.package == "python" and same_minor):
            report.notes.append(str(difference))
        else:
            report.problems.append(f"{difference}; {remedy}")


def _judge_workers(report: Report) -> None:
    workers = [node for node in report.nodes if node.role == "worker"]
    limits = {worker.memory_limit for worker in workers}
    if not workers:
        report.notes.append("there are no workers now; what they run could not be compared")
    if 0 in limits:
        unlimited = _some([worker.address for worker in workers if worker.memory_limit == 0])
        report.notes.append(f"no memory limit is set on {unlimited}; plans cannot keep to one: set --memory-limit")
    elif len(limits) > 1:
        sizes = ", ".join(format_bytes(limit) for limit in sorted(limit or 0 for limit in limits))
        report.notes.append(f"memory limits differ ({sizes}); plans go by the smallest")


def _judge_settings(report: Report, client: Any) -> None:
    """Add what the settings of workers cost."""
    workers = {node.address: node for node in report.nodes if node.role == "worker"}
    if not workers or not _same_package(report):
        return
    answers = ask_workers(client, [node.address for node in workers.values() if node.versions], settings_of_process)
    told = {workers[address].name: one for address, one in answers.items() if isinstance(one, ProcessSettings)}
    shares = {node.name: (node.threads or 0, node.memory_limit or 0) for node in workers.values()}
    report.notes += notes_on(settings_of_process(), told, shares)


def _same_package(report: Report) -> bool:
    """Whether workers have our functions, and can be asked."""
    client, *others = report.nodes
    return all(node.versions.get("nfs-dask") == client.versions.get("nfs-dask") for node in others if node.versions)


def _judge_encryption(report: Report, address: str) -> None:
    plain = [node.address for node in report.nodes if node.role == "worker" and not is_encrypted(node.address)]
    if report.encrypted and plain:
        report.problems.append(f"traffic with workers at {_some(plain)} is not encrypted; start them with tls://...")
    if not report.encrypted and not is_loopback(address):
        report.notes.append(
            "traffic is not encrypted, and whoever reaches the scheduler can run code on its workers; "
            "nfs-dask doctor --make-certificates DIR writes what TLS needs"
        )


def _sights(client: Any, store: str, report: Report) -> dict[str, str]:
    """What the client and every worker see at a location, as far as workers can be asked."""
    workers = [node for node in report.nodes if node.role == "worker" and node.versions]
    sights = {"client": _sight(store)}
    if not _same_package(report):
        report.notes.append("workers were not asked for the store: they need the same nfs-dask first")
        return sights
    answers = ask_workers(client, [node.address for node in workers], _sight, store, seconds=SIGHT_SECONDS)
    for node in workers:
        if (answer := answers.get(node.address)) is None:
            report.notes.append(f"{node.name} did not say in {SIGHT_SECONDS:.0f} s whether it reaches {store}")
        else:
            sights[node.name] = answer if isinstance(answer, str) else f"! {_first_line(answer)}"
    return sights


def _sight(location: str) -> str:
    """What this process sees at a location: equal texts for equal sights; "!" and why where it sees nothing."""
    try:
        folder = Folder.of(location)
        for name in ("zarr.json", ".zgroup"):
            if folder.exists(name):
                return hashlib.blake2b(folder.read(name), digest_size=8).hexdigest()
        if folder.names():
            raise StoreError("it is a folder, but not a Zarr group")
        parent, _, name = folder.location.rpartition("/")
        return f"{Folder(parent or '/').size(name)} bytes"  # a single file, such as .h5ad
    except (OSError, NfsDaskError, ImportError, ValueError) as error:
        return f"! {_first_line(error)}"


def _judge_sight(report: Report, sights: Mapping[str, str]) -> None:
    client = sights["client"]
    blind = {name: sight[2:] for name, sight in sights.items() if sight.startswith("!")}
    if blind:
        why = next(iter(blind.values()))
        report.problems.append(f"{report.store} is not reached by {_some(list(blind))}: {why}")
    other = [name for name, sight in sights.items() if name not in blind and sight != client]
    if other and "client" not in blind:
        report.problems.append(f"{report.store} is another thing on {_some(other)} than on the client")


def _some(names: Sequence[str]) -> str:
    """The first few of a list that may be long."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _first_line(error: object) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
