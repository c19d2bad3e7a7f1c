"""Clusters that are started on this machine for the occasion: reached from loopback only, and ended with it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any

from nfs_dask.cluster.worker_settings import PROFILES
from nfs_dask.errors import ClusterError, PlanError
from nfs_dask.units import MiB, format_bytes

_SAFE_PATH = "PYTHONSAFEPATH"
LEAST_WORKER = 256 * MiB  # Dask ends and restarts a smaller one before it has loaded what it needs
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.contact-address": None,  # workers would join that one
    PROFILES: False,  # nobody looks at them, and they grow for a quarter of an hour
}


@contextmanager
def start_cluster(
    workers: int | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    *,
    processes: bool = True,
) -> Iterator[Any]:
    """A client of a cluster on this machine, both closed at the end.

    Processes have a thread each, unless ``threads`` says otherwise; without processes one worker has all the threads.
    """
    import distributed

    if memory_limit is not None and memory_limit < LEAST_WORKER:
        raise PlanError(
            f"workers of {format_bytes(memory_limit)} cannot even start: with the libraries loaded one takes about "
            f"{format_bytes(LEAST_WORKER)}; give each {format_bytes(2 * LEAST_WORKER)} or more"
        )
    with ExitStack() as stack:
        stack.enter_context(_nothing_from_here())
        with _interrupts_held_back():
            cluster = stack.enter_context(_cluster(workers, threads, memory_limit, processes))
        yield stack.enter_context(distributed.Client(cluster, set_as_default=False))


def _cluster(workers: int | None, threads: int | None, memory_limit: int | None, processes: bool) -> Any:
    """Processes or threads that listen on loopback and nowhere else."""
    import dask
    import distributed
    from dask.system import CPU_COUNT

    class LoopbackWorker(distributed.Worker):
        """A worker whose HTTP server listens on loopback; one that talks within the process would on all interfaces."""

        def start_http_server(self, routes: Any, dashboard_address: Any, *args: Any, **keywords: Any) -> None:
            super().start_http_server(routes, dashboard_address or "127.0.0.1:0", *args, **keywords)

    try:
        with dask.config.set(SETTINGS):
            return distributed.LocalCluster(
                n_workers=(workers or max(1, CPU_COUNT // (threads or 1))) if processes else 1,
                threads_per_worker=threads or (1 if processes else CPU_COUNT),
                processes=processes,
                worker_class=None if processes else LoopbackWorker,
                memory_limit=memory_limit if memory_limit is not None else "auto",
                # No dashboard, but distributed serves its health page all the same: on a free port of this machine.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                security=_security(),
                silence_logs=logging.CRITICAL,  # what goes wrong in a task comes back with its result
            )
    except (OSError, RuntimeError) as error:
        first: BaseException = error
        while first.__cause__ is not None:
            first = first.__cause__
        raise ClusterError(
            f"workers of this machine did not start ({first}); see whether Dask's configuration, which "
            "`dask config list` shows, has settings that are meant for another cluster"
        ) from error


def _security() -> Any:
    """That of Dask's configuration; where it asks for encryption and has not all certificates, temporary ones."""
    import distributed

    security = distributed.Security()
    complete = all(security.get_tls_config_for_role(role)["cert"] for role in ("scheduler", "worker", "client"))
    if not security.require_encryption or complete:
        return security
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise ClusterError(
            "Dask's configuration requires encryption and has no certificates for workers of this machine; temporary "
            "ones are made with the package cryptography, which is not installed; run: pip install 'nfs-dask[tls]'"
        ) from None


@contextmanager
def _nothing_from_here() -> Iterator[None]:
    """Keep processes that start meanwhile from importing what lies in the current folder, where data may lie.

    Python looks there first, until a worker has taken over the path of the process that started it.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        os.environ.update({} if before is None else {_SAFE_PATH: before})


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for the end of this, and never reach threads and processes that start meanwhile.

    A terminal or a batch system sends them to all processes of a command. The client is to end the workers, when they
    have put away what they have, and they are not to die first. What Dask itself ends it asks to, and then kills.
    """
    resource_tracker.ensure_running()  # its start, if it came later, would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
