"""A first ingest compiles in two processes: the same as one alone would, and the second one outlives nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from nfs_dask.ingestion import compiling_ahead as module
from nfs_dask.ingestion.compiling_ahead import compiling_ahead
from nfs_dask.ingestion.text_options import TermParameters, TextOptions, make_terms
from nfs_dask.units import GiB

PATIENCE = 60  # seconds, which loaded machines may need


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[Any]]]:
    """All processes that are begun, on two cores, with nothing in the cache."""
    processes = []

    class Noted(subprocess.Popen[Any]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(module, "will_be_kept", lambda kernel: True)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    monkeypatch.setattr(module, "_free_nbytes", lambda: GiB)
    yield processes
    for process in processes:
        process.kill()


def terms(**given: Any) -> TextOptions:
    return make_terms(TermParameters(**given))


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_it_ends_with_the_block(begun: list[subprocess.Popen[Any]], error: type[BaseException] | None) -> None:
    with nullcontext() if error is None else pytest.raises(error), compiling_ahead(terms()):
        (process,) = begun
        assert process.poll() is None
        assert os.getsid(process.pid) != os.getsid(0)  # Ctrl-C in a terminal does not reach it
        if error is not None:
            raise error
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("given", [{"hashed": 10}, {"vocabulary": ["one"]}, {"ngrams": (1, 3)}, {"analyzer": "char"}])
def test_none_where_other_kernels_are_used(begun: list[subprocess.Popen[Any]], given: dict[str, Any]) -> None:
    with compiling_ahead(terms(**given)):
        assert begun == []


@pytest.mark.parametrize(("name", "answer"), [("will_be_kept", False), ("_cores", 1), ("_free_nbytes", GiB - 1)])
def test_none_where_it_would_not_pay(
    begun: list[subprocess.Popen[Any]], monkeypatch: pytest.MonkeyPatch, name: str, answer: object
) -> None:
    monkeypatch.setattr(module, name, lambda *_: answer)
    with compiling_ahead(terms()):
        assert begun == []


@pytest.mark.skipif(sys.platform != "linux", reason="shares of processors are Linux's")
@pytest.mark.parametrize(("said", "cores"), [("max 100000", 4), ("150000 100000", 1.5), ("800000 100000", 4)])
def test_a_container_has_its_share_of_cores(monkeypatch: pytest.MonkeyPatch, said: str, cores: float) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(Path, "read_text", lambda path: said if path.name == "cpu.max" else "")
    assert module._cores() == cores


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize(("limit", "free"), [("max", 8 * GiB), (str(3 * GiB), 2 * GiB), (str(90 * GiB), 8 * GiB)])
def test_a_container_has_its_share_of_memory(monkeypatch: pytest.MonkeyPatch, limit: str, free: int) -> None:
    memory = psutil.virtual_memory()._replace(available=8 * GiB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    said = {"memory.max": limit, "memory.current": str(GiB)}
    monkeypatch.setattr(Path, "read_text", lambda path: said[path.name])
    assert module._free_nbytes() == free


def test_where_no_process_can_begin_this_one_compiles_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(module, "will_be_kept", lambda _: True)
    monkeypatch.setattr(module, "_has_room", lambda: True)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with compiling_ahead(terms()):
        pass


LOST = """
import os, signal, subprocess
from nfs_dask.ingestion import compiling_ahead as module
from nfs_dask.ingestion.text_options import TermParameters, make_terms
module.will_be_kept, module._cores = lambda kernel: True, lambda: 2
module._free_nbytes = lambda: module.LEAST_FREE
with module.compiling_ahead(make_terms(TermParameters())):
    (child,) = __import__("psutil").Process().children()
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Which cannot end it, but whose end of the pipe is closed by the system."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LOST]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.wait(PATIENCE) == -signal.SIGKILL
        try:
            child.wait(PATIENCE)
        except psutil.TimeoutExpired:
            assert child.status() == psutil.STATUS_ZOMBIE  # it has ended, and nobody asked how
        except psutil.NoSuchProcess:
            pass


MAILS = "folder,text\n" + "spam,win a watch\nham,see you at noon\nspam,win gold\nham,d\u00e9j\u00e0 vu\n" * 20
INGEST = """
import os, sys
from nfs_dask.cli.main import cli
from nfs_dask.ingestion import compiling_ahead as module
module._cores = lambda: int(sys.argv[1])
cli(["ingest", "mail.csv", "--label-column", "folder", "mail.zarr", "--overwrite"], standalone_mode=False)
"""


@pytest.mark.slow
def test_both_together_compile_what_one_does(tmp_path: Path) -> None:
    """And nothing else, and say nothing else."""
    (tmp_path / "mail.csv").write_text(MAILS)
    compiled, said = [], []
    for cores in (1, 2):
        cache = tmp_path / str(cores)
        done = subprocess.run(
            [sys.executable, "-c", INGEST, str(cores)],
            env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "NFS_DASK_PROGRESS": "off"},
            cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        compiled.append(sorted(file.name for file in cache.rglob("*.nbc")))
        said.append(done.stdout.split(", written in")[0] + done.stderr)
    assert len(compiled[0]) > 20
    assert compiled[0] == compiled[1]
    assert said[0] == said[1]
