"""Finding and asking clusters: which client, how many workers, what they have, what they reach."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from nfs_dask.cluster.addresses import (
    GivenAddress,
    check_encryption,
    is_client,
    is_encrypted,
    is_loopback,
    warn_unless_encrypted,
)
from nfs_dask.cluster.gateway import connect_to_gateway, gateway_maximum, is_gateway, is_gateway_here, is_of_gateway
from nfs_dask.cluster.local_cluster import start_cluster
from nfs_dask.cluster.resources import Resources, Silent, resources_of, some_names
from nfs_dask.cluster.tls import troubles_of
from nfs_dask.cluster.warming import COUNTING, Warming, warm_up
from nfs_dask.errors import ClusterError, InputError
from nfs_dask.files.claims import sign, sweep
from nfs_dask.files.folder import PROBE, Folder
from nfs_dask.graphs import IN_A_THREAD
from nfs_dask.progress import Progress
from nfs_dask.redaction import redacted
from nfs_dask.units import format_bytes

logger = logging.getLogger("nfs_dask")

FIRST_WORKER_SECONDS = 300
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 1.0  # between two looks at which workers are there
WARM_SECONDS = 300
LATE_SECONDS = 8.0  # that a worker may take to get warm before a pass begins without it
ANSWER_SECONDS = 5.0  # that schedulers and workers have to answer a question
SILENT_SECONDS = 10.0  # without a heartbeat, of which workers send one each half second, or each few of many

_late: set[str] = set()  # addresses of workers that later passes do not wait for until they have answered


@contextmanager
def find_client(
    address: str | None, workers: int | None, memory_limit: int | None, *, insecure: bool = False
) -> Iterator[Any]:
    """The client at ``address``, else the current one, else one of a cluster made for the occasion.

    What was opened here is closed at the end; a client that was there stays open. Without workers or a memory limit
    asked for, the cluster is threads of this process, so that a script needs no ``__main__`` guard. A Dask task that
    calls this gives its thread to the tasks that it waits for.
    """
    with _seceded(), _found(address, workers, memory_limit, insecure) as client:
        yield client


@contextmanager
def _seceded() -> Iterator[None]:
    """Give the thread of a Dask task, if this runs in one, to other tasks."""
    import distributed

    try:
        distributed.get_worker()
    except ValueError:  # this is no task
        yield
    else:
        with distributed.worker_client():
            yield


@contextmanager
def _found(address: str | None, workers: int | None, memory_limit: int | None, insecure: bool) -> Iterator[Any]:
    if isinstance(address, GivenAddress):
        address.check()
        warn_unless_encrypted(address, insecure)
        if is_client(address.given):
            yield address.given
            return
    if address is not None:
        with connect(address, seconds=CONNECT_SECONDS, insecure=insecure) as client:
            yield client
        return
    current = current_client()
    if current is not None:
        warn_unless_encrypted(current.scheduler.address, insecure)
        yield current
        return
    processes = workers is not None or memory_limit is not None
    with start_cluster(workers, memory_limit=memory_limit, processes=processes) as client:
        yield client


@contextmanager
def connect(
    address: str,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    *,
    seconds: float = CONNECT_SECONDS,
    insecure: bool = False,
) -> Iterator[Any]:
    """A client of the scheduler at ``address``, closed at the end.

    Files of certificates that are not given are those of Dask's configuration, if it has any. A scheduler elsewhere
    without encryption is refused, unless that is ``insecure`` on purpose.
    """
    if is_gateway(address) and not isinstance(address, GivenAddress):
        with connect_to_gateway(address) as client:
            yield client
        return
    import distributed

    files = {"tls_ca_file": tls_ca, "tls_client_cert": tls_cert, "tls_client_key": tls_key}
    given = {name: file for name, file in files.items() if file is not None}
    there: Any = address
    security = None
    if isinstance(address, GivenAddress):  # a cluster brings its certificates
        there = address.given
    else:
        check_encryption(address, insecure, bool(given))
        security = distributed.Security(**({"require_encryption": True} if given else {}), **given)
        _check_certificates(address, security)
    try:
        client = distributed.Client(there, security=security, timeout=seconds, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise ClusterError(
            f"the scheduler at {address} cannot be reached ({_why(error, address, security)}); see that it is running, "
            "that this machine gets to its port, and that both sides use TLS with the same authority, or neither"
        ) from (error if redacted(str(error), address) == str(error) else None)
    with client:
        yield client


def _why(error: Exception, address: str, security: Any) -> str:
    """What went wrong, and what is wrong with the certificates, of which TLS says little."""
    reason = redacted(str(error).partition("\n")[0], address) or type(error).__name__
    encrypted = security is not None and is_encrypted(address)
    return "; ".join([reason, *(one.text for one in troubles_of(security) if one.grave)] if encrypted else [reason])


def _check_certificates(address: str, security: Any) -> None:
    """Refuse an encrypted address for which there are no certificates, or none that can be used."""
    if not is_encrypted(address):
        return
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(
            f"the certificates for {address} cannot be used ({reason}); give the authority, and a certificate with "
            "the key that belongs to it, as nfs-dask doctor --make-certificates writes them"
        ) from error
    if context is None:
        raise InputError(
            f"{address} is encrypted, which takes certificates, and there are none; name them in Dask's configuration "
            "(distributed.comm.tls), give a distributed.Client that has them, or --tls-ca, --tls-cert and --tls-key to "
            "a command"
        )


def leave_telling_to_us() -> None:
    """Let Dask's client log nothing of a scheduler that is lost: a command tells it in words of its own."""
    import distributed  # noqa: F401 - which sets up its logging, and would do so after what follows

    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)


def current_client() -> Any | None:
    """The client the user has made, if any; one whose event loop this would block is refused."""
    import distributed

    try:
        client = distributed.get_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise InputError(f"the current client is asynchronous, and passes are waited for; {IN_A_THREAD}")
    return client if client.status == "running" else None


def holder_of(value: Any) -> Any | None:
    """The client that holds a part of a lazy value, if any."""
    import distributed

    futures = distributed.futures_of(value)
    return futures[0].client if futures else None


def scheduler_info(client: Any) -> dict[str, Any]:
    """What the scheduler tells of itself and of all its workers.

    It is asked itself: ``Client.scheduler_info`` returns what was heard last, and every two seconds that is an answer
    to the client's own question, which has few workers or none.
    """
    return dict(client.sync(client.scheduler.identity, n_workers=-1))


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler knows of each worker, by address."""
    return dict(scheduler_info(client)["workers"])


def memory_of_workers(client: Any, seconds: float) -> dict[str, tuple[int, int]]:
    """Bytes that each worker takes, and may take, by address; nothing where the scheduler does not answer in time."""
    try:
        told = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=seconds)["workers"]
    except Exception:  # noqa: BLE001 - whatever it is, the pass itself notices, and tells more of it
        return {}
    return {
        address: (int((one.get("metrics") or {}).get("memory", 0)), int(one.get("memory_limit") or 0))
        for address, one in told.items()
    }


def own_nbytes(metrics: Mapping[str, Any]) -> int:
    """Memory that a worker takes beside the data that Dask holds in it, by what it last told the scheduler."""
    spilled = (metrics.get("spilled_bytes") or {}).get("memory", 0)
    return int(metrics.get("memory", 0) - metrics.get("managed_bytes", 0) + spilled)


def silent_workers(client: Any, least: float = SILENT_SECONDS) -> list[Silent]:
    """The workers without a heartbeat in the last ``least`` seconds; none where the scheduler does not say."""

    async def ask() -> tuple[Mapping[str, Any], float, Any]:
        told = await client.scheduler.identity(n_workers=-1)
        ttl = await client.run_on_scheduler(dask.config.get, "distributed.scheduler.worker-ttl")
        return told["workers"], await client.run_on_scheduler(time.time), ttl

    import dask

    try:
        workers, now, ttl = client.sync(ask, callback_timeout=ANSWER_SECONDS)
    except Exception:  # noqa: BLE001 - a scheduler may be gone or run no functions: nothing depends on this
        return []
    least = max(least, len(workers) / 50)
    ttl = dask.utils.parse_timedelta(ttl) if ttl else None
    silences = {address: now - one["last_seen"] for address, one in workers.items()}
    return [Silent(address, seconds, ttl) for address, seconds in sorted(silences.items()) if seconds > least]


def ask_workers(
    client: Any, addresses: Iterable[str], function: Callable[..., Any], *args: Any, seconds: float = ANSWER_SECONDS
) -> dict[str, Any]:
    """Return what a function returns on each of the workers that answers in time, by address; errors are values.

    ``Client.run`` waits for all of them, and one that is frozen never answers.
    """
    answers: dict[str, Any] = {}

    async def ask(address: str) -> None:
        with suppress(TimeoutError):
            run = client.run(function, *args, workers=[address], on_error="return")
            answers.update(await asyncio.wait_for(run, seconds))
            progress.advance()

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, addresses))

    with Progress(None, "waiting for workers", "answers") as progress:
        client.sync(ask_all)
    return answers


def ask_scheduler(client: Any, function: Callable[..., Any], *args: Any, seconds: float = CONNECT_SECONDS) -> Any:
    """Return what a function returns on the scheduler; a TimeoutError where no answer comes in time."""

    async def ask() -> Any:
        return await client.run_on_scheduler(function, *args)

    return client.sync(ask, callback_timeout=seconds)


def planned_workers(client: Any, asked: int | None) -> int:
    """How many workers to plan for: as asked, else the maximum of an adaptive cluster, else those present."""
    return asked or adaptive_maximum(client) or len(workers_of(client))


def adaptive_maximum(client: Any) -> int | None:
    """How far a cluster grows that is scaled by this process or by a gateway; None: it does not, or elsewhere."""
    adaptive = getattr(client.cluster, "_adaptive", None)
    maximum = ask_scheduler(client, gateway_maximum) if is_of_gateway(client) else getattr(adaptive, "maximum", None)
    return maximum if isinstance(maximum, int) and 0 < maximum < 2**31 else None


def measure(
    client: Any,
    asked: int | None,
    places: Sequence[Folder],
    warming: Warming = COUNTING,
    meanwhile: Callable[[dict[str, Any]], None] | None = None,
) -> Resources:
    """Wait for the first worker, warm up those present, and take what the weakest of them has.

    ``meanwhile`` is called with the futures of those that have been asked so far, by address. Those that are not done
    in the end belong to workers that are busy or frozen.
    """
    address = client.scheduler.address
    if warming.compiles_much and (is_loopback(address) or is_gateway_here(address)):
        # Workers of this machine read what was compiled here; compiling takes them memory that they never give back.
        warm_up([], "", warming)
    token = uuid.uuid4().hex[:12]
    probes = [place for place in places if _probe(place, token)]
    try:
        with Progress(None, "waiting for workers", "ready") as progress:
            locations = [place.location for place in probes]
            workers, reports = _warm(client, locations, token, warming, meanwhile, progress)
    finally:
        for place in probes:
            place.delete(f"{PROBE}{token}")
    reached = [place for i, place in enumerate(probes) if all(report["reaches"][i] for report in reports)]
    resources = resources_of(
        workers,
        planned=max(1, planned_workers(client, asked)),
        warm=max(report["own"] for report in reports),
        spool=reached[0].location if reached else None,
    )
    logger.debug("%d worker(s), %s each, spool %s", len(workers), format_bytes(resources.memory_limit), resources.spool)
    return resources


def _warm(
    client: Any,
    places: list[str],
    token: str,
    warming: Warming,
    meanwhile: Callable[[dict[str, Any]], None] | None,
    progress: Progress,
) -> tuple[dict[str, Any], list[Any]]:
    """Warm up the workers that are present in the end, and the reports of those that got warm in time."""
    asked: dict[str, Any] = {}
    warmed = threading.Event()
    begun = time.monotonic()
    while True:
        workers = _wait_for_first(client)
        for address in workers.keys() - asked.keys():
            key = f"nfs-warm-{uuid.uuid4()}"
            asked[address] = client.submit(warm_up, places, token, warming, workers=[address], pure=False, key=key)
            asked[address].add_done_callback(lambda _: warmed.set())
        if meanwhile is not None:
            meanwhile(asked)
        pending = {address for address in workers if not asked[address].done()}
        warm = workers.keys() - pending
        progress.advance(len(warm) - progress.done)
        _late.difference_update(warm)
        seconds = time.monotonic() - begun
        if seconds > LATE_SECONDS and (new := pending - _late):
            _late.update(new)
            logger.warning("%d of %d workers are ready; %s", len(warm), len(workers), _told(client, new))
        if warm and pending <= _late:
            for address in asked.keys() - workers.keys():  # they have left
                asked.pop(address).release()
            return workers, client.gather([asked[address] for address in warm])
        if seconds > WARM_SECONDS:
            died = len(asked) - len(workers)
            raise ClusterError(
                f"no worker of {client.scheduler.address} was ready in {WARM_SECONDS} s, and {died} died or left"
                + (f": {_told(client, pending)}" if pending else "")
                + ". Wait until workers are free, or see their logs, and give them more memory if they ran out of it"
            )
        look = time.monotonic() + LOOK_SECONDS
        while (left := look - time.monotonic()) > 0 and not all(asked[address].done() for address in pending):
            warmed.wait(left)
            warmed.clear()


def _told(client: Any, late: set[str]) -> str:
    """Why workers are not ready, as far as that is known."""
    silent = [one for one in silent_workers(client, ANSWER_SECONDS) if one.address in late]
    others = sorted(late.difference(one.address for one in silent))
    busy = [f"busy, or still loading what they need, and given work when they are ready: {some_names(others)}"]
    return "; ".join([*map(str, silent), *(busy if others else [])])


def _wait_for_first(client: Any) -> dict[str, Any]:
    """The workers there are, once there is one."""
    if workers := workers_of(client):
        return workers
    logger.info("waiting for the first worker of %s", client.scheduler.address)
    waiting = client.submit(int, pure=False)  # an adaptive cluster starts workers when there is work
    deadline = time.monotonic() + FIRST_WORKER_SECONDS
    while not waiting.done():
        if time.monotonic() > deadline:
            waiting.cancel()
            raise ClusterError(
                f"no worker has joined {client.scheduler.address} in {FIRST_WORKER_SECONDS} s; "
                "start workers, or look at the logs of those that should have come"
            )
        time.sleep(0.1)
    return workers_of(client)


def _probe(place: Folder, token: str) -> bool:
    """Leave a mark that workers look for; False where the client itself cannot write."""
    try:
        sweep(place, PROBE)
        sign(place, f"{PROBE}{token}")
    except OSError as error:
        logger.debug("%s cannot hold temporary files: %s", place.location, error)
        return False
    return True
