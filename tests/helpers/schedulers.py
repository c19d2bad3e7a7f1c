"""A scheduler and its workers as processes of their own, as ``dask scheduler`` and ``dask worker`` start them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DASK = "import sys; from distributed.cli.dask_{0} import main; sys.exit(main(sys.argv[1:]))"


@dataclass
class Scheduler:
    """One that runs, and those who work for it."""

    file: Path  # that dask scheduler --scheduler-file has written
    process: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def metrics(self) -> dict[str, float]:
        """What Prometheus would scrape, by name and labels."""
        port = json.loads(self.file.read_text())["services"]["dashboard"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}


@contextmanager
def scheduler_of_its_own(folder: Path, environment: Mapping[str, str], workers: int = 2) -> Iterator[Scheduler]:
    """Start them, and kill those that are left; what they say is in files of the folder."""
    file = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    found = Scheduler(file, _started("scheduler", [*options, "--scheduler-file", str(file)], folder, environment), [])
    try:
        deadline = time.monotonic() + 60
        while not file.exists():
            assert found.process.poll() is None and time.monotonic() < deadline, (folder / "scheduler.out").read_text()
            time.sleep(0.05)
        words = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--nthreads", "1", "--memory-limit", "1GiB"]
        words += ["--no-nanny", "--no-dashboard", "--local-directory", str(folder), "--death-timeout", "60"]
        for _ in range(workers):
            found.workers.append(_started("worker", words, folder, environment))
        yield found
    finally:
        for process in [*found.workers, found.process]:
            process.kill()
            process.wait()


def _started(what: str, words: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with open(folder / f"{what}.out", "ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", DASK.format(what), *words], env=dict(environment), stdout=out, stderr=out
        )
