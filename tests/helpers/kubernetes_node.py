"""A node of Kubernetes on this machine, the operator beside it, and an S3 server that its pods reach.

`tests/deploy/kubernetes/build.sh` makes what this needs, once, in the folder that NFS_DASK_KUBERNETES names.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.places import ROOT

SCRIPTS = ROOT / "tests" / "deploy" / "kubernetes"
FOLDER = Path(os.environ.get("NFS_DASK_KUBERNETES", "/nonexistent"))
GATEWAY = "10.244.77.1"  # this machine, as pods see it
S3_PORT = 26900
KEYS = {"AWS_ACCESS_KEY_ID": "nfs-dask-test", "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-test"}
S3_VARIABLES = {**KEYS, "AWS_ENDPOINT_URL": f"http://{GATEWAY}:{S3_PORT}", "AWS_DEFAULT_REGION": "us-east-1"}
PROGRAMS = ("kubectl", "etcd", "containerd", "runc", "dnsmasq", "buildah", "jq", "ip", "unshare")

# The server is older than the client library of the operator, which expects names that it left empty.
SHIM = """
from kr8s._api import Api
listed = Api.async_api_resources_uncached
async def named(self):
    return [one | {"singularName": one.get("singularName") or one["kind"].lower()} for one in await listed(self)]
Api.async_api_resources_uncached = named
"""


def skip_unless_possible() -> None:
    """Skip where no node can be started, and say what is missing."""
    if not (FOLDER / "bin" / "kubelet").exists():
        pytest.skip(f"NFS_DASK_KUBERNETES names no folder with a kubelet; {SCRIPTS}/build.sh FOLDER makes one")
    if os.geteuid() != 0:
        pytest.skip("a kubelet needs root")
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed; {SCRIPTS}/build.sh lists the packages")


def kubectl(*words: object, given: str | None = None, code: int = 0, seconds: float = 60) -> str:
    """What kubectl prints, of standard error too where it is to fail."""
    result = subprocess.run(
        ["kubectl", *map(str, words)],
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | {"KUBECONFIG": str(FOLDER / "run" / "kubeconfig")},
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout + (result.stderr if code else "")


def found(*words: object) -> Any:
    """What there is, as kubectl tells it; empty where there is none."""
    return json.loads(kubectl("get", *words, "--ignore-not-found", "-o", "json") or "{}")


def pods(*labels: str) -> list[dict[str, Any]]:
    """Pods with those labels."""
    return list(found("pods", "-l", ",".join(labels)).get("items", []))


def apply(manifests: list[dict[str, Any]], *words: str) -> None:
    """Apply manifests; what the old server does not know of a Job is left out by it."""
    kubectl("apply", "-f", "-", *words, given=yaml.safe_dump_all(manifests))


def eventually(holds: Callable[[], Any], seconds: float, what: str, every: float = 0.5) -> Any:
    """The first true answer, within some time."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{state()}"
        time.sleep(every)
    return answer


def state() -> str:
    """What stands where, for whoever reads a failure."""
    pods = kubectl("get", "daskjobs,daskclusters,jobs,pods", "-o", "wide")
    happened = kubectl("get", "events", "--sort-by=.lastTimestamp").splitlines()[-15:]
    log = FOLDER / "run" / "operator.log"
    told = [line for line in log.read_text().splitlines() if "httpx" not in line] if log.exists() else []
    return "\n".join([pods, *happened, *told[-15:]])


@contextmanager
def lost(pod: dict[str, Any]) -> Iterator[None]:
    """End a pod as if its node had gone: no process is told, the kubelet says nothing, and the pod is forgotten.

    The number of its namespace of processes is not given to another meanwhile: the pod in its place, on the same node,
    would else know that the first is gone, and not have to find out.
    """
    run = FOLDER / "run"
    words = f"ctr -a {run}/containerd.sock -n k8s.io tasks".split()
    (status,) = pod["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    listed = subprocess.run([*words, "ls"], check=True, capture_output=True, text=True).stdout.splitlines()
    (pid,) = [line.split()[1] for line in listed if line.startswith(container)]
    kubelet = int((run / "kubelet.pid").read_text())
    with open(f"/proc/{pid}/ns/pid"):
        os.kill(kubelet, signal.SIGSTOP)
        try:
            subprocess.run([*words, "kill", "--all", "-s", "KILL", container], check=True)
            kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
        finally:
            os.kill(kubelet, signal.SIGCONT)
        yield


@contextmanager
def node() -> Iterator[None]:
    """The node with the operator's resources; one that is up already is used, and left as it is."""
    if (FOLDER / "run" / "kubeconfig").exists():
        yield
        return
    _script("image.sh", str(FOLDER))
    try:
        _script("node.sh", "up")
        yield
    finally:
        _script("node.sh", "down")


def _script(name: str, *words: str) -> None:
    subprocess.run([SCRIPTS / name, *words], check=True, timeout=900, stdin=subprocess.DEVNULL)


@contextmanager
def operator() -> Iterator[None]:
    """The operator on this machine, with the names of services as pods see them."""
    from importlib.resources import files

    crds = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator/crds"
    kubectl("apply", "-f", crds)
    eventually(_established, 60, "the operator's resources")
    run = FOLDER / "run"
    (run / "kr8s_shim.py").write_text(SHIM)
    words = [sys.executable, "-W", "ignore", "-m", "kopf", "run", "--all-namespaces", "--standalone"]
    words += ["-m", "kr8s_shim", "-m", "dask_kubernetes.operator.controller"]
    inside = f"mount --bind {run}/resolv.conf /etc/resolv.conf && exec {' '.join(words)}"
    with _process(["unshare", "--mount", "sh", "-c", inside], "operator", KUBECONFIG=str(run / "kubeconfig")):
        yield


def _established() -> bool:
    conditions = [one.get("status", {}).get("conditions") or [] for one in found("crd")["items"]]
    return all({"Established"} <= {c["type"] for c in told if c["status"] == "True"} for told in conditions)


@contextmanager
def store() -> Iterator[None]:
    """An S3 server on the bridge of the pods, with a bucket of the name ``bucket``."""
    import boto3
    from botocore.exceptions import BotoCoreError

    run = FOLDER / "run"
    (run / "weed").mkdir(exist_ok=True)
    keys = [{"accessKey": KEYS["AWS_ACCESS_KEY_ID"], "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    (run / "s3.json").write_text(
        json.dumps({"identities": [{"name": "test", "credentials": keys, "actions": actions}]})
    )
    words = f"server -dir={run}/weed -ip={GATEWAY} -ip.bind={GATEWAY} -master.port=26910 -volume.port=26911"
    words += " -filer.port=26912 -master.volumeSizeLimitMB=128 -volume.max=40 -master.telemetry=false -s3"
    words += f" -s3.port={S3_PORT} -s3.ip.bind={GATEWAY} -s3.port.iceberg=0 -s3.config={run}/s3.json"
    with _process([str(FOLDER / "bin" / "weed"), *words.split()], "weed"):
        client = boto3.client(
            "s3",
            endpoint_url=S3_VARIABLES["AWS_ENDPOINT_URL"],
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region_name="us-east-1",
        )

        def has_bucket() -> bool:
            try:
                client.create_bucket(Bucket="bucket")
            except client.exceptions.ClientError as error:
                return "Exist" in str(error) or "Owned" in str(error)
            except (OSError, BotoCoreError):
                return False
            return True

        eventually(has_bucket, 60, "a bucket")
        yield


@contextmanager
def _process(words: list[str], name: str, **variables: str) -> Iterator[None]:
    """A process with a log of its own, ended with all that it started."""
    run = FOLDER / "run"
    environment = os.environ | {"PYTHONPATH": str(run), "HOME": str(run)} | variables
    with open(run / f"{name}.log", "ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    try:
        yield
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, how)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    continue
