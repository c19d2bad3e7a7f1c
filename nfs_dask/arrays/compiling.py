"""Compiling by numba: once for all processes, kept on disk where a place is writable, else in memory.

So a read-only root file system works, and so do several workers that begin together: one of them compiles what the
others load.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import logging
import os
import pickle
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numba
from numba.core import config, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUTargetOptions

from nfs_dask.progress import PATIENCE, running_command, say

MOST_WAITING = 60.0  # seconds for another process, which may have stopped
LOOK_SECONDS = 0.01

logger = logging.getLogger("nfs_dask")

_PART: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# An option that numba keeps to itself: kernels do without where a version has none.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}

# What reading a file of the cache may raise; numba's own errors, such as those of types, are none of these.
_UNREADABLE = (
    pickle.UnpicklingError,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _Unusable(Exception):
    """The cache could not be read or written. What a kernel raises while it runs is no word about its cache."""


class _Compiling(event.Listener):
    """Says once what takes so long where nothing is in the cache yet."""

    def __init__(self) -> None:
        self._started: list[float] = []  # of kernels that are being compiled, one for another
        self._seconds = 0.0
        self._said = False

    def on_start(self, event: Any) -> None:
        self._started.append(time.monotonic())
        if self._seconds > PATIENCE and not self._said:
            self._said = True
            say(f"first {running_command.get()}: compiling once, some seconds; later runs use what is compiled")

    def on_end(self, event: Any) -> None:
        seconds = time.monotonic() - self._started.pop() if self._started else 0.0
        if not self._started:
            self._seconds += seconds


event.register("numba:compile", _Compiling())
# A file in the current folder could name another place for compiled code, and what lies there runs.
os.environ.setdefault("NUMBA_CACHE_DIR", "")
config.reload_config()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on first use for the types it meets; survive an unwritable or a damaged cache."""
    try:
        compiled = _compiled(function, cache=True)
    except RuntimeError:  # numba: no locator available, that is, no writable place for a cache
        compiled = _compiled(function)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        nonlocal compiled
        try:
            return compiled(*args)
        except _Unusable as error:
            logger.warning("the cache of compiled code is unusable (%s); compiling in memory", error)
            _clear_cache(compiled)
            call.dispatcher = compiled = _compiled(function)  # type: ignore[attr-defined]
            return compiled(*args)

    call.dispatcher = compiled  # type: ignore[attr-defined]
    return call


def kernel_part(function: Callable[..., Any]) -> Any:
    """A function that kernels alone call, and that makes no arrays.

    It goes without wrappers for callers in Python and C, which take part of the time to compile, and without counts of
    who refers to the arrays it is given: each is changed under a lock, as other threads might have them, too.
    """
    return numba.njit(**_PART, **_UNCOUNTED)(function)


def inlined_part(function: Callable[..., Any]) -> Any:
    """As `kernel_part`, copied into the loops that call it: for what is done so often that calls would be seen."""
    return numba.njit(inline="always", **_PART)(function)


def _compiled(function: Callable[..., Any], *, cache: bool = False) -> Any:
    """By numba, without the wrapper for callers in C, of which there are none: it takes part of the time to compile."""
    options: dict[str, Any] = {"nogil": True, "cache": cache, "no_cfunc_wrapper": True}
    compiled = numba.njit(**options)(function)
    compiled.compile = functools.partial(_compile_once, compiled, compiled.compile)
    return compiled


def _compile_once(compiled: Any, compile_here: Callable[[Any], Any], signature: Any) -> Any:
    """As numba does, unless another process is about it: then load what it has made."""
    _load_arrays_without_scipy()
    collects = gc.isenabled()
    with _alone_with(compiled):
        gc.disable()  # looking for the cycles that compiling makes takes a sixth of it
        try:
            return compile_here(signature)
        except _UNREADABLE as error:
            raise _Unusable(error) from error
        finally:
            if collects:
                gc.enable()


@contextmanager
def _alone_with(compiled: Any) -> Iterator[None]:
    """Keep other processes from compiling the same; not once something is there to be loaded."""
    folder = compiled.stats.cache_path
    if folder is None or _is_kept(compiled):
        yield
        return
    place = Path(folder, f"{compiled.py_func.__module__}.{_name_in_cache(compiled)}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = place.open("wb")
    except OSError:  # nothing can be kept there, so that there is nothing to wait for
        yield
        return
    with file:
        _lock(file)
        try:
            yield
        finally:
            with suppress(OSError):
                place.unlink()


def _is_kept(compiled: Any) -> bool:
    return any(Path(compiled.stats.cache_path).glob(f"*.{_name_in_cache(compiled)}.*.nbi"))


def _name_in_cache(compiled: Any) -> str:
    return f"{compiled.py_func.__name__}-{compiled.py_func.__code__.co_firstlineno}"


def _lock(file: IO[bytes]) -> None:
    """Wait until no other process has the file; not for ever, and not where the system knows no locks."""
    try:
        import fcntl
    except ImportError:
        return
    deadline = time.monotonic() + MOST_WAITING
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOOK_SECONDS)
        except OSError:
            return
        else:
            return


@global_compiler_lock
def _load_arrays_without_scipy() -> None:
    """Load numba's functions of arrays, which would load scipy's linear algebra only to see whether it is there.

    That takes 16 MiB, and half of the time. Whatever of numba uses it loads it itself.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    loads = linalg.ensure_blas
    linalg.ensure_blas = _look_for_scipy
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = loads


def _look_for_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        raise ImportError("there is no scipy")


def _clear_cache(compiled: Any) -> None:
    """Delete the damaged cache files of one kernel, so that the next process starts clean."""
    path = Path(compiled.stats.cache_path or os.devnull)
    if path.is_dir():
        for file in path.glob(f"*.{compiled.py_func.__name__}-*.nb[ic]"):
            file.unlink(missing_ok=True)
