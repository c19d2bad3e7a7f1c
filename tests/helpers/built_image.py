"""The image of deploy/Dockerfile, and what it does in a container without network, rights or a place to write to.

`tests/deploy/kubernetes/build.sh` makes a base for it, in the folder that NFS_DASK_KUBERNETES names.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.helpers.kubernetes_node import FOLDER, SCRIPTS

NAME, BASE = "docker.io/library/nfs-dask:0.1.0", "docker.io/library/python:3.11-slim"
STORAGE = f"--storage-driver overlay --root {FOLDER}/storage --runroot {FOLDER}/storage-run"
PODMAN = f"podman {STORAGE} --cgroup-manager cgroupfs --runtime {shutil.which('runc')}"
# What the page says of `docker run`; the limits are for machines whose root may not raise them.
LOCKED = (
    "run --rm --read-only --tmpfs /tmp --network none --cap-drop ALL --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
)


def built() -> None:
    """Build the image, or skip where that is not possible."""
    if missing := [name for name in ("buildah", "podman", "runc") if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed; {SCRIPTS}/build.sh lists the packages")
    if not (FOLDER / "storage").exists():
        pytest.skip(f"NFS_DASK_KUBERNETES names no folder with a base image; {SCRIPTS}/build.sh FOLDER makes one")
    subprocess.run([SCRIPTS / "image.sh", FOLDER], check=True, timeout=900, stdin=subprocess.DEVNULL)


def in_image(*words: object, folder: Path | None = None) -> str:
    """What a command prints in a container; a folder is there as /data."""
    volume = [] if folder is None else ["--volume", f"{folder}:/data"]
    given = [*PODMAN.split(), *LOCKED.split(), *volume, NAME, *map(str, words)]
    result = subprocess.run(given, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def compressed_layers(name: str, folder: Path) -> list[int]:
    """Bytes of each layer of an image, as registries keep them."""
    archive = folder / "archive.tar"
    subprocess.run(["buildah", *STORAGE.split(), "push", "-q", name, f"oci-archive:{archive}"], check=True, timeout=300)
    with tarfile.open(archive) as opened:

        def read(member: str) -> dict[str, list[dict[str, int | str]]]:
            found: dict[str, list[dict[str, int | str]]] = json.load(opened.extractfile(member))  # type: ignore[arg-type]
            return found

        digest = str(read("index.json")["manifests"][0]["digest"]).replace(":", "/")
        layers = read(f"blobs/{digest}")["layers"]
    archive.unlink()
    return [int(layer["size"]) for layer in layers]
