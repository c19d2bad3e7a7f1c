"""Drivers that are tasks of a cluster: a worker starts one beside itself, and another worker does if the first dies.

The driver is a process of its own, so that what it loads is not counted as the worker's, and signals end it as they end
any command. It holds no secrets of the client: what it needs to reach data and scheduler, it has from its worker.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from nfs_dask.cli.detached import start_driver
from nfs_dask.engine.driver import DRIVER, STOP, Command, leave_to_others, refuse_second_driver
from nfs_dask.engine.run_events import EventLog
from nfs_dask.engine.run_status import has_status, is_run, read_status
from nfs_dask.errors import ClusterError, InputError, NfsDaskError, ResumeError
from nfs_dask.files.folder import Folder
from nfs_dask.redaction import redacted

SUBMITTED = "submitted"  # the event
BEGIN_SECONDS = 30.0  # that a worker has to begin, before the caller is told that it will
LAST_SECONDS = 60.0  # that the driver of a worker that died has to notice it
CLOSING_SECONDS = 10.0  # that a worker takes to end when it was told to
LEASH_SECONDS = 30.0  # that a driver has to end in when its worker is gone
LOOK_SECONDS = 0.5
RETRIES = 3  # of a task that raised something unforeseen; those whose worker died are not counted

_OF_CLIENT = ("--scheduler", "--tls-ca", "--tls-cert", "--tls-key", "--run", "--resume")
_PROGRAM = """
import sys
from nfs_dask.cli.main import cli
from nfs_dask.cli.on_cluster import end_with_parent
end_with_parent()
cli(["fit", *sys.argv[1:]], prog_name="nfs-dask")
"""


def submit_driver(
    client: Any, typed: Sequence[str], run: str, places: Iterable[str], command: Command
) -> dict[str, Any]:
    """Have a worker drive ``nfs-dask fit`` with the words that were typed; what to know of it.

    ``places`` are the data, and what is written. Those that are paths are looked for in the folder of the command.
    """
    import distributed

    folder, words = Folder.of(run), _words_that_travel(typed)
    if secrets := [hidden for word in [*words, run] if (hidden := redacted(word)) != word]:
        raise InputError(
            f"{secrets[0]} holds a secret, and commands that are sent to a cluster can be read there; give the secret "
            "to the workers instead, in their environment or configuration"
        )
    if has_status(run) and (before := read_status(run)).live and before.driver is not None:
        raise ResumeError(f"{run} is being worked on by {before.driver}; end it with nfs-dask stop {run} first")
    for old in (DRIVER, STOP):
        folder.delete(old)
    here = None if all("://" in place for place in (run, *places)) else command.folder
    key = f"nfs-driver-{uuid.uuid4().hex[:16]}"
    EventLog(folder).write(SUBMITTED, {"scheduler": client.scheduler.address, "task": key, "resume": command.resume})
    location = run if here is None or "://" in run else os.path.join(here, run)
    future = client.submit(drive, words, location, here, command.to_json(), key=key, retries=RETRIES, pure=False)
    distributed.fire_and_forget(future)  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + BEGIN_SECONDS
    while time.monotonic() < deadline and not folder.exists(DRIVER):
        if future.status == "error":
            error = future.exception()
            raise error if isinstance(error, NfsDaskError) else ClusterError(f"no worker could start it: {error}")
        time.sleep(LOOK_SECONDS)
    begun = read_status(run).driver
    return {
        "run": folder.location,
        "task": key,
        "scheduler": client.scheduler.address,
        "pid": None if begun is None else begun.pid,
        "host": None if begun is None else begun.host,
        "look": f"nfs-dask status {shlex.quote(run)}",
        "stop": f"nfs-dask stop {shlex.quote(run)}",
    }


def _words_that_travel(typed: Sequence[str]) -> list[str]:
    """The words that were typed, without what is the client's alone."""
    words, rest = [], iter(typed)
    for word in rest:
        name, _, value = word.partition("=")
        if name in _OF_CLIENT:
            if not value:
                next(rest, None)
        elif word not in ("--detach", "--on-cluster"):
            words.append(word)
    return words


# On a worker


def drive(words: list[str], run: str, here: str | None, command: dict[str, str]) -> int:
    """Run the command beside this worker until it ends, and go on with what an earlier worker began; its exit code."""
    import distributed

    worker = distributed.get_worker()
    key = worker.get_current_task()
    # It computes nothing itself: the thread is for the tasks of the pass.
    distributed.secede()  # type: ignore[no-untyped-call]
    folder = Folder.of(run)
    if here is not None and not Path(here).is_dir():
        raise InputError(
            f"{here}, where this was typed, is not there on {worker.address}; use a disk that client and workers "
            "share, or URLs for data, model and run folder"
        )
    if not has_status(run):
        raise InputError(
            f"{worker.address} does not see the run folder {folder.location}; name one that all machines reach"
        )
    _wait_for_last_driver(folder)
    if has_status(run) and read_status(run).state == "finished":
        return 0
    folder.delete(DRIVER)
    how = ["--resume", run, "--overwrite"] if is_run(run) else ["--run", run]  # a model that is there is this run's own
    security: Any = worker.security
    address = worker.scheduler.address
    plain = [] if address.startswith("tls://") or "--insecure" in words else ["--insecure"]  # as this worker does
    # Certificates of the worker, for clients by Dask's configuration: files, or their content, which is in no command
    certificates = {
        "CA_FILE": security.tls_ca_file,
        "CLIENT__CERT": security.tls_worker_cert,
        "CLIENT__KEY": security.tls_worker_key,
    }
    process, _ = start_driver(
        folder,
        ["-c", _PROGRAM, *words, *how, "--scheduler", address, *plain],
        Command(command["resume"], command["folder"]),
        cwd=here or tempfile.gettempdir(),
        env={f"DASK_DISTRIBUTED__COMM__TLS__{name}": value for name, value in certificates.items() if value},
    )
    while process.poll() is None:
        task = worker.state.tasks.get(key)
        if task is None or task.state in ("cancelled", "resumed"):
            process.terminate()
        time.sleep(LOOK_SECONDS)
    if process.returncode == 128 + signal.SIGTERM:
        time.sleep(CLOSING_SECONDS)  # if the worker had the same signal it goes now, and another one drives on
    return process.returncode


def _wait_for_last_driver(folder: Folder) -> None:
    """Wait for the driver of a worker that died on this machine, which ends itself and puts things away before."""
    deadline = time.monotonic() + LAST_SECONDS
    while True:
        try:
            return refuse_second_driver(folder)
        except ResumeError:
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK_SECONDS)


# In the driver


def end_with_parent() -> None:
    """End this process as by SIGTERM when the one that started it is gone."""
    threading.Thread(target=_watch_parent, name="nfs-dask-leash", daemon=True).start()


def _watch_parent() -> None:
    sys.stdin.buffer.read()  # nothing is ever written to it: it ends when the other end is closed, however that died
    click.echo("the worker that started this is gone; another one goes on with it", err=True)
    leave_to_others()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEASH_SECONDS)
    os._exit(128 + signal.SIGTERM)
