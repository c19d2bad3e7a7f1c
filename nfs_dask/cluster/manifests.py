"""Manifests for Kubernetes: a fit on a cluster of its own, with memory that goes with its plan.

What does not depend on the fit lies beside this, in ``kubernetes/``, as YAML that kustomize reads as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from nfs_dask._version import __version__
from nfs_dask.cluster.resources import USABLE
from nfs_dask.errors import InputError
from nfs_dask.units import GiB, MiB

STEP = 256 * MiB  # sizes are multiples of it
LEAST_WORKER_LIMIT = GiB
LEAST_CLIENT = GiB
LOGS = GiB  # of a container, beside what it spills
BESIDE_WORKER = 512 * MiB  # of its container: the process that watches it, and what ends before Kubernetes looks
BESIDE_CLIENT = 768 * MiB  # of its container: Python, the libraries, and the connection to the scheduler
_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_MOST_NAME = 63 - len("-default-worker-0123456789")  # what the operator makes of it for workers


@dataclass(frozen=True)
class WorkerSize:
    """What each worker has."""

    threads: int
    memory_limit: int  # bytes, that Dask holds it to

    @classmethod
    def for_peak(cls, peak_nbytes: int, threads: int) -> WorkerSize:
        """The smallest worker for which a plan with that peak fits.

        >>> WorkerSize.for_peak(2 * GiB, threads=2).memory_limit / GiB
        3.5
        """
        return cls(threads, max(LEAST_WORKER_LIMIT, _stepped(peak_nbytes / USABLE)))

    @property
    def container(self) -> int:
        """Bytes that Kubernetes holds its container to."""
        return _stepped(self.memory_limit + BESIDE_WORKER)


@dataclass(frozen=True)
class FitJob:
    """A fit as a job of Kubernetes: what is run, and where."""

    store: str
    model: str
    run: str
    options: Sequence[str]  # of ``nfs-dask fit``
    workers: int
    size: WorkerSize
    client_nbytes: int
    name: str = "nfs-dask"
    image: str = f"nfs-dask:{__version__}"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _MOST_NAME:
            raise InputError(
                f"{self.name!r} is no name for a job; give up to {_MOST_NAME} small letters, digits and hyphens that "
                "begin with a letter, such as spam-fit"
            )

    def manifests(self) -> list[dict[str, Any]]:
        """A DaskJob with its cluster, the policy of their network, and how many of their pods may be taken away."""
        names = ("daskcluster", "daskjob", "networkpolicy", "disruptions")
        cluster, job, *others = (manifest for name in names for manifest in _read(name))
        self._size_worker(cluster["spec"]["worker"])
        self._describe_fit(job["spec"]["job"]["spec"])
        job["spec"]["cluster"] = {"spec": {part: cluster["spec"][part] for part in ("scheduler", "worker")}}
        made = [_called(manifest, self.name, self.image) for manifest in (job, *others)]
        for manifest in made:
            manifest["metadata"]["name"] = manifest["metadata"]["name"].replace("nfs-dask", self.name)
        return made

    def _size_worker(self, worker: dict[str, Any]) -> None:
        worker["replicas"] = self.workers
        (container,) = worker["spec"]["containers"]
        _set_variables(container, WORKER_THREADS=self.size.threads, WORKER_MEMORY=f"{self.size.memory_limit // MiB}MiB")
        _set_resource(container, "memory", self.size.container)
        container["resources"]["requests"]["cpu"] = str(self.size.threads)
        spilled = 2 * self.size.container
        _spill_volume(worker["spec"])["emptyDir"]["sizeLimit"] = _quantity(spilled)
        _set_resource(container, "ephemeral-storage", spilled + LOGS)

    def _describe_fit(self, pod: dict[str, Any]) -> None:
        (container,) = pod["containers"]
        _set_variables(container, STORE=self.store, MODEL=self.model, RUN=self.run, WORKERS=self.workers)
        _set_resource(container, "memory", max(LEAST_CLIENT, _stepped(self.client_nbytes + BESIDE_CLIENT)))
        method = container["args"].index("--method")
        container["args"][method:] = self.options


def to_yaml(manifests: Sequence[dict[str, Any]]) -> str:
    """As kubectl reads it."""
    return yaml.dump_all(manifests, Dumper=_WithoutAnchors, sort_keys=False, width=120)


class _WithoutAnchors(yaml.SafeDumper):
    """Writes again what is the same as something before: people read and change these files."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _read(name: str) -> list[dict[str, Any]]:
    text = (files("nfs_dask.cluster") / "kubernetes" / f"{name}.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def _set_variables(container: dict[str, Any], **values: object) -> None:
    for entry in container["env"]:
        if entry["name"] in values:
            entry["value"] = str(values.pop(entry["name"]))
    assert not values, f"the manifest has no {', '.join(values)}"


def _set_resource(container: dict[str, Any], name: str, nbytes: int) -> None:
    # What is requested is the limit: a node that promises more than it has ends workers in mid-pass.
    container["resources"]["requests"][name] = container["resources"]["limits"][name] = _quantity(nbytes)


def _spill_volume(pod: dict[str, Any]) -> dict[str, Any]:
    return next(volume for volume in pod["volumes"] if volume["name"] == "tmp")


def _called(value: Any, name: str, image: str) -> Any:
    """With another name of the cluster, wherever it stands, and with another image."""
    if isinstance(value, list):
        return [_called(one, name, image) for one in value]
    if isinstance(value, dict):
        own = {"image": image, "dask.org/cluster-name": name}
        return {key: own[key] if key in own else _called(one, name, image) for key, one in value.items()}
    return value.replace("//nfs-dask-scheduler:", f"//{name}-scheduler:") if isinstance(value, str) else value


def _stepped(nbytes: float) -> int:
    return int(-(-nbytes // STEP) * STEP)


def _quantity(nbytes: int) -> str:
    """As Kubernetes writes it."""
    return f"{nbytes // GiB}Gi" if nbytes % GiB == 0 else f"{nbytes // MiB}Mi"
