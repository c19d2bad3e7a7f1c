"""What is in deploy/kubernetes, as kustomize and `plan --kubernetes` put it together, and the commands it runs."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import entry_points

import click
import yaml

from nfs_dask.cli.main import cli
from nfs_dask.cluster.manifests import FitJob, WorkerSize
from nfs_dask.units import MiB
from tests.helpers.kustomize import kustomized
from tests.helpers.places import ROOT

DEPLOY = ROOT / "deploy"
OVERLAYS = sorted(path.parent for path in DEPLOY.glob("kubernetes/overlays/*/kustomization.yaml"))

ADDRESS = "tls://nfs-dask-scheduler:8786"
FIT = FitJob(
    "s3://bucket/mail.zarr", "s3://bucket/model", "s3://bucket/run", ["--method", "multinomial", "-k", "1000"],
    workers=4, size=WorkerSize(2, 3584 * MiB), client_nbytes=1280 * MiB,
)  # fmt: skip


MANIFESTS = {path.name: kustomized(path) for path in OVERLAYS} | {"plan": FIT.manifests()}


def overlay_of(root, *components):
    """The folder of a user who composes the base with components."""
    (root / "deploy").symlink_to(DEPLOY)
    (root / "mine").mkdir()
    names = [f"../deploy/kubernetes/components/{name}" for name in components]
    said = {"resources": ["../deploy/kubernetes/base"], "components": names}
    (root / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(said))
    return root / "mine"


def documents():
    return [found for manifests in MANIFESTS.values() for found in manifests]


def of_kind(*kinds):
    return [found for found in documents() if found["kind"] in kinds]


def cluster_spec(manifest):
    return manifest["spec"]["cluster"]["spec"] if manifest["kind"] == "DaskJob" else manifest["spec"]


def job_specs():
    """Pods that fit, of the operator's jobs and of those of Kubernetes."""
    found = [job["spec"]["job"]["spec"] for job in of_kind("DaskJob")]
    return found + [job["spec"]["template"]["spec"] for job in of_kind("Job")]


def pods():
    clusters = [cluster_spec(manifest) for manifest in of_kind("DaskCluster", "DaskJob")]
    return [cluster[part]["spec"] for cluster in clusters for part in ("scheduler", "worker")] + job_specs()


def containers():
    return [container for pod in pods() for container in pod["containers"]]


def values_of(container):
    return {entry["name"]: entry["value"] for entry in container.get("env", [])}


def cluster_containers(manifest):
    return [cluster_spec(manifest)[part]["spec"]["containers"][0] for part in ("scheduler", "worker")]


def command_of(container):
    """The words a container runs, with variables put in as Kubernetes does."""
    values = {"DASK_WORKER_NAME": "nfs-dask-default-worker-0"} | values_of(container)
    words = [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in container["args"]]
    if words[0] == "begin-or-resume":  # deploy/begin-or-resume.sh
        return [*words[2:], "--run", words[1]]
    return words


def parse(words):
    """Let click parse a command without running it; the parameters it would be run with."""
    groups = {"nfs-dask": cli}
    if words[0] == "dask":
        name = f"distributed.cli.dask_{words[1]}"
        (entry,) = [e for e in entry_points(group="dask_cli") if e.name == words[1]]
        assert entry.module == name
        command, rest = importlib.import_module(name).main, words[2:]
    else:
        command, rest = groups[words[0]], words[1:]
    context = command.make_context(words[0], list(rest), resilient_parsing=False)
    if isinstance(command, click.Group):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, f"there is no command {name}"
        context = command.make_context(name, rest, parent=context)
    return context.params
