"""Results as JSON: what was found, by which command, of which versions, on which machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

_NUMBERS = re.compile(r"\[[-+.,\s\d\w]*\]")  # a list of them, which takes one line
LIBRARIES = ("nfs-dask", "numpy", "scipy", "scikit-learn", "numba", "dask", "matplotlib")


def plain(value: Any) -> Any:
    """The same in what JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value


def write(file: Path, value: Any) -> None:
    """All or nothing, so that an interrupted run leaves no half of a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    text = json.dumps(plain(value), indent=1, allow_nan=False)
    beside.write_text(_NUMBERS.sub(lambda found: " ".join(found[0].split()), text) + "\n")
    beside.replace(file)


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def versions(more: Iterable[str] = ()) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name) for name in (*LIBRARIES, *more)}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),  # bytes
        "system": f"{platform.system()} {platform.release()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def record(
    name: str,
    title: str,
    settings: dict[str, Any],
    values: dict[str, Any],
    seconds: float,
    command: str,
    libraries: Iterable[str] = (),
) -> dict[str, Any]:
    """One result, with all that is needed to have it again: the command, and versions of some more libraries."""
    told = (" --quick" if settings["quick"] else "") + (f" --seed {settings['seed']}" if settings["seed"] else "")
    return {
        "id": name,
        "title": title,
        "command": f"{command}{told}",
        "settings": settings,
        "versions": versions(libraries),
        "machine": machine(),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),  # of the last piece, if it was run in pieces
        "values": plain(values),
    }
