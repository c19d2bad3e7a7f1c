"""LLVM's code is given up when kernels are there, and comes back when more of them are compiled."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_SCRIPT = """
import numba, psutil
from nfs_dask.cluster.compiler_code import give_up_compiler_code

def held():
    return psutil.Process().memory_info().rss >> 20

@numba.njit
def square(x):
    return x * x

@numba.njit
def total(n):
    return sum([square(i) for i in range(n)])

assert square(3) == 9
with_it = held()
give_up_compiler_code()
print(with_it - held())
assert square(4) == 16 and total(5) == 30 and square(0.5) == 0.25
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="the system has no such thing")
def test_a_process_is_smaller_and_goes_on_compiling() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 20


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    from nfs_dask.cluster import compiler_code

    monkeypatch.setattr(compiler_code, "_MAPS", compiler_code._MAPS / "none")
    assert list(compiler_code._places_of_code()) == []
    compiler_code.give_up_compiler_code()
