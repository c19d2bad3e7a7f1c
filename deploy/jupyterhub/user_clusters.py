"""Clusters of users: who asks for them, how many and how large they may be, and whose processes they are."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

from aiohttp import web
from dask_gateway_server.auth import JupyterHubAuthenticator, unauthorized
from dask_gateway_server.backends.base import PublicException
from dask_gateway_server.backends.local import LocalBackend
from dask_gateway_server.models import User
from dask_gateway_server.options import Float, Integer, Options, Select
from hub_settings import Limits, read_settings

GiB = 2**30

# What a pass wants of its workers: a thread for each task, and memory that is given back when it is free.
WORKERS_HAVE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "DASK_TEMPORARY_DIRECTORY": ".",  # the folder of the cluster, which goes with it
}


class NoMoreClustersThanAllowed:
    """A backend that counts the clusters a user has."""

    async def start_cluster(self, user: User, cluster_options: dict[str, Any]) -> str:
        most = read_settings().limits_of(user.name, list(user.groups)).clusters
        running = [cluster.name for cluster in await self.list_clusters(username=user.name)]
        if len(running) >= most:
            raise PublicException(
                f"{user.name} has {len(running)} cluster(s) already, {', '.join(running)}, and may have {most}; "
                "end one first: Gateway().stop_cluster(NAME)"
            )
        return await super().start_cluster(user, cluster_options)


class HubTokens(JupyterHubAuthenticator):
    """Users are known by the hub's tokens. One that the hub does not know is refused, and no fault of the server."""

    async def authenticate(self, request: web.Request) -> Any:
        try:
            return await super().authenticate(request)
        except web.HTTPInternalServerError:  # how JupyterHubAuthenticator takes a refusal by the hub
            raise unauthorized("jupyterhub") from None


class UserProcesses(NoMoreClustersThanAllowed, LocalBackend):
    """Schedulers and workers are processes of the user, in a folder that only the user reads."""

    def get_logs_directory(self, workdir: str) -> str:
        """A folder of root, as root opens the files: in one of the user, the user would say where they are."""
        return str(read_settings().logs / Path(workdir).name)

    def set_file_permissions(self, paths: list[str], username: str) -> None:
        """Give the user the folder of the cluster, which is the first path, and what is in it.

        The other paths do not count: dask-gateway-server 2026.3 lists the letters of two of them, "/" among them.
        """
        owner = pwd.getpwnam(username)
        for path in [Path(paths[0]), *Path(paths[0]).rglob("*")]:
            os.chown(path, owner.pw_uid, owner.pw_gid)


def options_for(user: User) -> Options:
    """What a user is asked about a new cluster, as the settings are at that moment."""
    settings = read_settings()
    limits = settings.limits_of(user.name, list(user.groups))
    (fewest, most), (least, largest), idle = limits.worker_cores, limits.worker_memory, limits.idle_minutes
    return Options(
        Integer("worker_cores", fewest, fewest, most, "Cores of a worker"),
        Float("worker_memory", max(least, min(4, largest)), least, largest, "Memory of a worker (GiB)"),
        Float("idle_minutes", idle, min(0.01, idle), idle, "Ends after so many minutes without work"),
        Select("environment", list(settings.environments), label="Environment of the workers"),
        handler=lambda chosen: cluster_of(chosen, limits, settings.environments[chosen.environment]),
    )


def cluster_of(chosen: Any, limits: Limits, prefix: str) -> dict[str, Any]:
    """What the gateway is to make of an answer."""
    return {
        "worker_cores": chosen.worker_cores,
        "worker_memory": int(chosen.worker_memory * GiB),
        "idle_timeout": chosen.idle_minutes * 60,
        "cluster_max_cores": limits.cores,
        "cluster_max_memory": int(limits.memory * GiB),
        "cluster_max_workers": limits.workers,
        # The commands dask-scheduler and dask-worker, which the gateway would call, are gone from distributed.
        "scheduler_cmd": [f"{prefix}/bin/dask", "scheduler"],
        "worker_cmd": [f"{prefix}/bin/dask", "worker"],
        "environment": WORKERS_HAVE,
    }
