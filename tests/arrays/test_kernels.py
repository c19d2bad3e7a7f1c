"""Kernels against numpy; and compiled code whose cache is missing, unwritable, damaged or fought over."""

from __future__ import annotations

import itertools
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
VALUES = ["bool", "uint8", "int16", "uint32", "int64", "float32", "float64"]
WHOLE = [name for name in VALUES if not name.startswith("float")]
COLUMNS = ["uint16", "int32", "uint32", "int64", "uint64"]


def beside(usual: list[tuple[str, str]], values: list[str]) -> list[Any]:
    """Types of values and columns: the usual ones, and each type of columns once, which is slow, as all is compiled."""
    columns = itertools.cycle(COLUMNS)
    rare = [pair for pair in zip(values, columns, strict=False) if pair not in usual]
    return [*usual, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in rare)]


class Entries:
    """Random rows with stored zeros and empty rows; columns unsorted and repeated."""

    def __init__(self, values: str = "uint8", columns: str = "int32", codes: str = "int32", seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 9, 30) * (rng.random(30) < 0.8)
        self.indptr = np.concatenate(([0], np.cumsum(lengths)))
        nnz = int(self.indptr[-1])
        self.rows = np.repeat(np.arange(30), lengths)
        self.indices = rng.integers(0, N_FEATURES, nnz).astype(columns)
        self.data = rng.integers(0, 2 if values == "bool" else 100, nnz).astype(values)
        if self.data.dtype.kind == "f":
            self.data = (self.data * 0.7).astype(values)
        elif self.data.dtype.kind == "i":
            self.data = self.data - np.array(50, values)
        self.codes = rng.integers(0, N_CLASSES, 30).astype(codes)
        self.class_of = self.codes[self.rows].astype(int)
        self.csr = tuple(map(kernels.read_only, (self.indptr, self.indices, self.data, self.codes)))

    def table(self, amounts: Any, dtype: str) -> np.ndarray:
        """Amounts added up by class and column, one by one in the order of the entries."""
        out = np.zeros((N_CLASSES, N_FEATURES), dtype)
        np.add.at(out, (self.class_of, self.indices.astype(int)), np.asarray(amounts).astype(dtype))
        return out


def given(values: Any, dtype: Any = None) -> np.ndarray:
    """An array as the package gives it to kernels that only read it."""
    return kernels.read_only(np.array(values, dtype))


def empty(dtype: str) -> np.ndarray:
    return np.zeros((N_CLASSES, N_FEATURES), dtype)


# Adding up


@pytest.mark.parametrize(("values", "columns"), beside([(name, "int32") for name in WHOLE], WHOLE))
def test_integers_add_up_exactly(values: str, columns: str) -> None:
    e, out = Entries(values, columns), empty("int64")
    kernels.add_values(*e.csr, None, out)
    np.testing.assert_array_equal(out, e.table(e.data, "int64"))
    weights, out = np.arange(30) - 10, empty("int64")
    kernels.add_values(*e.csr, weights, out)
    np.testing.assert_array_equal(out, e.table(e.data.astype(int) * weights[e.rows], "int64"))


@pytest.mark.parametrize(("values", "codes"), [("float32", "int8"), ("float64", "int32"), ("int64", "int64")])
def test_reals_add_up_in_the_order_of_the_entries(values: str, codes: str) -> None:
    """Equal to the last bit to adding one after another, so nothing is reordered and float32 is widened first."""
    e, out = Entries(values, codes=codes), empty("float64")
    kernels.add_values(*e.csr, None, out)
    np.testing.assert_array_equal(out, e.table(e.data, "float64"))
    weights, out = np.random.default_rng(1).random(30), empty("float64")
    kernels.add_values(*e.csr, weights, out)
    np.testing.assert_allclose(out, e.table(e.data.astype(float) * weights[e.rows], "float64"), rtol=1e-15)


@pytest.mark.parametrize("values", ["bool", "uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("threshold", [0.0, 10.0, -1.0])
def test_documents_are_those_above_the_threshold(values: str, threshold: float) -> None:
    e, out = Entries(values), empty("int64")
    above = e.data > threshold
    kernels.add_documents(*e.csr, threshold, None, out)
    np.testing.assert_array_equal(out, e.table(above, "int64"))
    for weights, dtype in ((np.arange(30), "int64"), (np.arange(30) * 0.5, "float64")):
        out = empty(dtype)
        kernels.add_documents(*e.csr, threshold, weights, out)
        np.testing.assert_array_equal(out, e.table(above * weights[e.rows], dtype))


def test_adding_goes_on_top_of_what_is_there() -> None:
    e, out = Entries(), empty("int64")
    for _ in range(3):
        kernels.add_values(*e.csr, None, out)
    np.testing.assert_array_equal(out, 3 * e.table(e.data, "int64"))


# Looking


@pytest.mark.parametrize("columns", COLUMNS)
def test_canonical_means_strictly_increasing_within_rows(columns: str) -> None:
    def ask(indptr: list[int], indices: list[int]) -> bool:
        return bool(kernels.is_canonical(given(indptr), given(indices, columns)))

    assert ask([0], [])
    assert ask([0, 0, 0], [])
    assert ask([0, 2, 2, 4], [1, 5, 0, 9])  # a row may begin below the end of the last one
    assert not ask([0, 2], [5, 1])
    assert not ask([0, 2], [5, 5])
    assert not ask([0, 1, 4], [7, 1, 2, 2])


@pytest.mark.parametrize("columns", COLUMNS)
def test_duplicates_are_within_one_row(columns: str) -> None:
    def ask(indptr: list[int], indices: list[int]) -> bool:
        return bool(kernels.has_duplicates(given(indptr), given(indices, columns), np.full(10, -1, np.int32)))

    assert not ask([0, 3, 6], [5, 1, 9, 9, 1, 5])
    assert ask([0, 3, 6], [5, 1, 9, 9, 1, 9])
    assert ask([0, 0, 2], [0, 0])
    assert not ask([0, 0], [])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_refused_value(dtype: str) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        assert kernels.first_refused(given([-1, 2, bad, np.nan], dtype), False) == 2
    assert kernels.first_refused(given([1, -0.0, -1e-40, -2], dtype), True) == 2  # the smallest, too
    assert kernels.first_refused(given([1, -0.0, np.finfo(dtype).max], dtype), True) == -1
    assert kernels.first_refused(given([], dtype), True) == -1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_range_of_values(dtype: str) -> None:
    many = np.tile([1, 0, 3], 400)
    assert kernels.value_range(given([3, 7, -2], dtype)) == (-2, 7, 0)
    assert kernels.value_range(given([3, 7], dtype)) == (0, 7, 0)
    assert kernels.value_range(given([], dtype)) == (0, 0, 0)
    assert kernels.value_range(given([*many, -1, *many, 8], dtype)) == (-1, 8, 0)
    for odd in (0.5, -1e-40, np.finfo(dtype).tiny):
        assert kernels.value_range(given([*many, odd, 7], dtype))[2] > 0
    for odd in (np.nan, np.inf, -np.inf):
        assert np.isnan(kernels.value_range(given([*many, odd, 7], dtype))[2])


@pytest.mark.parametrize("dtype", WHOLE)
def test_the_sum_of_whole_numbers(dtype: str) -> None:
    data = Entries(dtype).data
    assert kernels.about_sum(kernels.read_only(data)) == float(data.astype(float).sum())
    about = kernels.about_sum(kernels.read_only(np.full(4, 2**62)))
    assert about == 2.0**64  # does not


# Sorting into buckets and back


@pytest.mark.parametrize("shift", [0, 2, 4, 6])
@pytest.mark.parametrize(("values", "columns"), beside([("uint8", "int32"), ("float64", "int64")], VALUES))
def test_buckets_are_a_stable_sort_by_tile_and_class(shift: int, values: str, columns: str) -> None:
    e = Entries(values, columns)
    tiles = e.indices.astype(int) >> shift
    bucket = tiles * N_CLASSES + e.class_of
    order = np.argsort(bucket, kind="stable")
    indptr, indices, _, codes = e.csr
    sizes = np.zeros(((N_FEATURES >> shift) + 1) * N_CLASSES, np.int64)
    kernels.bucket_sizes(indptr, indices, codes, shift, N_CLASSES, sizes)
    np.testing.assert_array_equal(sizes, np.bincount(bucket, minlength=len(sizes)))

    starts = np.cumsum(sizes) - sizes
    ends, rows_ends = starts.copy(), starts.copy()
    got_columns, got_values = np.empty(len(e.data), np.uint16), np.empty(len(e.data), values)
    kernels.bucket_entries(*e.csr, shift, N_CLASSES, ends, got_columns, got_values)
    np.testing.assert_array_equal(ends, np.cumsum(sizes))
    np.testing.assert_array_equal(got_columns, (e.indices.astype(int) - (tiles << shift))[order])
    np.testing.assert_array_equal(got_values, e.data[order])
    rows = np.empty(len(e.data), np.int32)
    kernels.bucket_rows(indptr, indices, codes, shift, N_CLASSES, rows_ends, rows)
    np.testing.assert_array_equal(rows, e.rows[order])
    np.testing.assert_array_equal(rows_ends, ends)


def test_a_tile_of_2_to_the_16_columns_fits_16_bits() -> None:
    columns = np.array([65535, 65536, 131071, 0])
    indptr, codes = np.array([0, 4]), np.array([0])
    ends, got = np.array([0, 2]), np.empty(4, np.uint16)
    kernels.bucket_entries(indptr, columns, np.arange(4), codes, 16, 1, ends, got, np.empty(4, np.int64))
    np.testing.assert_array_equal(got, [65535, 0, 0, 65535])


def test_gathering_puts_pieces_side_by_side_in_each_bucket() -> None:
    shift, n_classes = 2, 2
    columns = np.array([0, 3, 2, 1, 1, 1, 2, 3], np.uint16)  # of two pieces, within their tiles
    values, weights = np.array([10, 11, 12, 13, 20, 21, 22, 23]), np.arange(8.0)
    borders = np.array([[0, 4], [1, 6], [3, 6], [3, 7], [4, 8]])  # of tile 0: classes 0, 1; tile 1: 0, 1
    got_columns, got_values, got_weights = np.empty(8, np.uint32), np.empty(8, np.int64), np.empty(8)
    into = got_columns, got_values, got_weights
    kernels.gather_entries(borders, columns, values, weights, shift, n_classes, 8, *into)
    np.testing.assert_array_equal(got_columns, 8 + np.array([0, 1, 1, 3, 2, 6, 5, 7]))
    np.testing.assert_array_equal(got_values, [10, 20, 21, 11, 12, 22, 13, 23])
    np.testing.assert_array_equal(got_weights, [0, 4, 5, 1, 2, 6, 3, 7])
    packed = columns.astype(np.uint32) | values.astype(np.uint32) << shift
    kernels.gather_entries(borders, packed, None, None, shift, n_classes, 8, got_columns[::-1].copy(), got_values, None)
    np.testing.assert_array_equal(got_values, [10, 20, 21, 11, 12, 22, 13, 23])


@pytest.mark.parametrize("threshold", [None, 0.0, 1.5, -1.0])
def test_a_bucket_is_counted_over_all_pieces(threshold: float | None) -> None:
    rng = np.random.default_rng(0)
    columns, values = rng.integers(0, 8, 100), rng.integers(0, 4, 100)
    begins, ends = np.array([0, 20, 50, 70]), np.array([10, 20, 60, 100])
    counts = np.arange(8)
    want = counts.copy()
    for begin, end in zip(begins, ends, strict=True):
        amounts = values if threshold is None else values > threshold
        np.add.at(want, columns[begin:end], amounts[begin:end])
    kernels.count_bucket(begins, ends, (columns | values << 3).astype(np.uint32), 3, threshold, counts)
    np.testing.assert_array_equal(counts, want)


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


KEEPING = """
assert compiling.will_be_kept(kernels.about_sum) is {before}
kernels.about_sum(np.array([1, 2]))
assert not compiling.will_be_kept(kernels.about_sum)
"""


def test_what_will_be_kept_is_known(tmp_path: Path) -> None:
    imported = "from nfs_dask.arrays import compiling"
    for before in (True, False):
        assert finish(start(tmp_path, KEEPING.format(before=before), between=imported)) == ""


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
