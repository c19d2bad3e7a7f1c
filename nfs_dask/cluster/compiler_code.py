"""The compiler's own code: run while kernels are compiled or loaded, and not after that.

LLVM is in one file, of which each process that has compiled or loaded a kernel keeps some 50 MiB mapped. Dask counts
them as memory of the worker, and so do plans, although they are pages of the file, which all processes share and which
the system has at hand. Given up, they are mapped again, one by one, if they are run again.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_CODE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp .*/libllvmlite[^/]*\.so\n")  # nobody has ever written to such pages


def give_up_compiler_code() -> None:
    """Let go of the pages of LLVM's code that this process has run; nothing where the system has no such thing."""
    for start, end in _places_of_code():
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        advise(start, end - start, mmap.MADV_DONTNEED)


def _places_of_code() -> Iterator[tuple[int, int]]:
    with suppress(OSError):  # no such file, but on Linux
        for start, end in _CODE.findall(_MAPS.read_text()):
            yield int(start, 16), int(end, 16)
