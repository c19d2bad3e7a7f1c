"""Kernels against numpy; and compiled code whose cache is missing, unwritable, damaged or fought over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import nfs_dask
from nfs_dask.arrays import compiling, kernels

N_CLASSES, N_FEATURES = 3, 40


def test_entries_add_up_in_their_order() -> None:
    """Equal to the last bit to adding one after another, also of columns that a row repeats; float32 is widened."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 30) * (rng.random(30) < 0.8)
    indptr, rows = np.concatenate(([0], np.cumsum(lengths))), np.repeat(np.arange(30), lengths)
    indices, codes = rng.integers(0, N_FEATURES, len(rows)), rng.integers(0, N_CLASSES, 30)
    for values in ("uint8", "int64", "float32", "float64"):
        data = (rng.integers(0, 100, len(rows)) * (0.7 if values[0] == "f" else 1)).astype(values)
        csr = map(kernels.read_only, (indptr, indices.astype(np.int32), data, codes.astype(np.int32)))
        found, want = np.zeros((2, N_CLASSES, N_FEATURES), "float64" if values[0] == "f" else "int64")
        kernels.add_values(*csr, None, found)
        np.add.at(want, (codes[rows], indices), data.astype(want.dtype))
        np.testing.assert_array_equal(found, want)


def test_the_first_refused_value() -> None:
    for dtype in (np.float32, np.float64):
        for bad in (np.nan, np.inf, -np.inf):
            assert kernels.first_refused(np.array([-1, 2, bad, np.nan], dtype), False) == 2
        assert kernels.first_refused(np.array([1, -0.0, -1e-40, -2], dtype), True) == 2  # the smallest, too
        assert kernels.first_refused(np.array([1, -0.0, np.finfo(dtype).max], dtype), True) == -1
        assert kernels.first_refused(np.zeros(0, dtype), True) == -1


def test_the_range_of_values() -> None:
    many = np.tile([1, 0, 3], 400)
    for dtype in (np.float32, np.float64):

        def found(*values: Any, dtype: Any = dtype) -> tuple[float, float, float]:
            low, high, rest = kernels.value_range(kernels.read_only(np.array(values, dtype)))
            return low, high, rest

        assert found(3, 7, -2) == (-2, 7, 0)
        assert found(3, 7) == (0, 7, 0)
        assert found() == (0, 0, 0)
        assert found(*many, -1, *many, 8) == (-1, 8, 0)
        assert all(found(*many, odd, 7)[2] > 0 for odd in (0.5, -1e-40, np.finfo(dtype).tiny))
        assert all(np.isnan(found(*many, odd, 7)[2]) for odd in (np.nan, np.inf, -np.inf))


# The cache of compiled code

PREFACE = """
import sys
import numba
import numpy as np
from nfs_dask import progress
progress.PATIENCE = 600.0  # where others work, too, it would be said that this takes so long
from nfs_dask.arrays import kernels
{between}
"""
TWO_KERNELS = """
assert kernels.first_refused(np.array([1.0, -2.0]), True) == 1
assert kernels.about_sum(np.array([1, 2])) == 3.0
"""
ALL_KERNELS = f"""
{TWO_KERNELS}
out, marks = np.zeros((2, 3), np.int64), np.full(3, -1, np.int32)
indptr, indices = np.array([0, 2, 3]), np.array([0, 2, 2], np.int32)
kernels.add_values(indptr, indices, np.array([1, 2, 3], np.uint8), np.array([0, 1], np.int32), None, out)
assert out.tolist() == [[1, 0, 2], [0, 0, 3]], out
assert kernels.value_range(np.array([1.0, 2.0])) == (0, 2, 0)
assert kernels.is_canonical(indptr, indices)
assert not kernels.has_duplicates(indptr, indices, marks)
"""
N_KERNELS = 6

some = pytest.mark.parametrize(
    "calls", [TWO_KERNELS, pytest.param(ALL_KERNELS, marks=pytest.mark.slow)], ids=["two", "all"]
)


def start(cache: Path | None, calls: str, *, between: str = "", package: Path | None = None) -> subprocess.Popen[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/none"}
    environment |= {"PYTHONPATH": str(package or Path(nfs_dask.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-W", "error", "-c", PREFACE.format(between=between) + calls]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[str]) -> str:
    """What it said on standard error, after it succeeded."""
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return errors


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that one process has filled."""
    cache = tmp_path_factory.mktemp("filled")
    assert finish(start(cache, ALL_KERNELS)) == ""
    assert len(list(cache.rglob("*.nbi"))) == N_KERNELS
    return cache


@some
def test_compiles_where_nothing_is_writable(tmp_path: Path, calls: str) -> None:
    """Folders that even root cannot make: where they would be, there is a file."""
    source = Path(nfs_dask.__file__).parent
    shutil.copytree(source, tmp_path / "nfs_dask", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "nfs_dask" / "__pycache__").touch()
    assert finish(start(None, calls, package=tmp_path)) == ""
    assert finish(start(Path("/dev/null/cache"), calls, package=tmp_path)) == ""


@some
def test_compiles_where_the_cache_vanished(tmp_path: Path, calls: str) -> None:
    cache = tmp_path / "cache"
    vanish = f"import shutil; shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()"
    assert "compiling in memory" in finish(start(cache, calls, between=vanish))


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_cache_heals(filled: Path, tmp_path: Path, suffix: str) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(filled, cache)  # keeps times, so that numba takes the files for current
    files = sorted(cache.rglob(f"*.{suffix}"))
    for file, damage in zip(files, DAMAGES, strict=True):
        file.write_bytes(damage(file.read_bytes()))
    assert "compiling in memory" in finish(start(cache, ALL_KERNELS))
    finish(start(cache, ALL_KERNELS))  # fills the gaps
    assert len(list(cache.rglob("*.nbc"))) == N_KERNELS
    assert finish(start(cache, ALL_KERNELS)) == ""


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: bytes(len(content)),
    lambda content: np.random.default_rng(0).integers(0, 256, len(content), np.uint8).tobytes(),
    lambda content: b"\x80\x04K\x01.",  # sound, but not what it should be
    lambda content: content[3:],
]


COUNTING = """
import atexit
from numba.core import event
class Seen(event.Listener):
    names = []
    def on_start(self, event): pass
    def on_end(self, event): self.names.append(event.data["dispatcher"].py_func.__name__)
event.register("numba:compile", Seen())
atexit.register(lambda: print(sum(name in ("_first_refused", "about_sum") for name in Seen.names)))
"""


def test_of_several_processes_one_compiles_and_others_load(tmp_path: Path) -> None:
    together = [start(tmp_path, TWO_KERNELS, between=COUNTING) for _ in range(3)]
    told = [process.communicate(timeout=120) for process in together]
    assert [errors for _, errors in told] == [""] * 3
    assert sum(int(compiled) for compiled, _ in told) == 2
    compiled, _ = start(tmp_path, TWO_KERNELS, between=COUNTING).communicate(timeout=60)
    assert int(compiled) == 0
    assert list(tmp_path.rglob("*.lock")) == []


def test_a_process_that_does_not_end_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "held"
    hold = "file = open(sys.argv[1], 'wb'); compiling._lock(file); print('held', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", f"import sys, time; from nfs_dask.arrays import compiling; {hold}", str(place)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as other, place.open("wb") as file:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        monkeypatch.setattr(compiling, "MOST_WAITING", 0.2)
        begun = time.monotonic()
        compiling._lock(file)
        other.kill()
        assert time.monotonic() - begun >= 0.2
    monkeypatch.setattr(compiling, "MOST_WAITING", 60.0)
    with place.open("wb") as file:
        compiling._lock(file)  # the system has let go of what the other had
        assert time.monotonic() - begun < 60


def test_linear_algebra_is_there_for_who_compiles_it(tmp_path: Path) -> None:
    """Though kernels are loaded without it."""
    loaded = "assert 'numba.np.arraymath' in sys.modules and 'scipy.linalg' not in sys.modules"
    dot = "assert numba.njit(lambda a, b: np.dot(a, b))(np.eye(2), np.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]"
    assert finish(start(tmp_path, f"{TWO_KERNELS}{loaded}\n{dot}\nassert 'scipy.linalg' in sys.modules")) == ""


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_row_pointers_from_rows(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for n_rows in (1, 2, 7, 200):
        rows = np.sort(rng.integers(n_rows, size=int(rng.integers(0, 400)))).astype(dtype)
        starts = np.zeros(n_rows + 1, np.int64)
        assert kernels.row_starts(rows, starts)
        np.testing.assert_array_equal(starts, np.searchsorted(rows, np.arange(n_rows + 1)))


@pytest.mark.parametrize("rows", [[1, 0], [0, 5], [0, 999_999, 1], [-1, 0], [2]])
def test_rows_out_of_order_or_range_are_noticed(rows: list[int]) -> None:
    assert not kernels.row_starts(np.array(rows), np.zeros(3, np.int64))


def test_what_a_product_loses_is_known() -> None:
    lost = numba.njit(lambda x, y: kernels.fused(x, y, -(x * y)))
    rng = np.random.default_rng(0)
    for x, y in (rng.random((200, 2)) * 10.0 ** rng.integers(-99, 99, (200, 2))).tolist():
        assert Fraction(lost(x, y)) == Fraction(x) * Fraction(y) - Fraction(x * y)
