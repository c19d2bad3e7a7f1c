"""Fits on a node of Kubernetes: a real API server, kubelet and operator make the pods, of the image and the manifests.

tests/deploy/kubernetes/build.sh FOLDER
NFS_DASK_KUBERNETES=FOLDER python -m pytest -m slow -s tests/deploy/test_kubernetes_node.py
"""

from __future__ import annotations

import json
import operator
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed import Client

import nfs_dask as nfs
from nfs_dask.cluster.tls import make_certificates
from nfs_dask.engine.driver import REMOTE_BEAT_SECONDS, WATCHED_BEATS
from nfs_dask.engine.run_status import read_status
from nfs_dask.units import GiB, parse_bytes
from tests.helpers import kubernetes_node as node
from tests.helpers.commands import run
from tests.helpers.deployed import overlay_of
from tests.helpers.kubernetes_doors import assert_serves_little, assert_turns_away_who_has_no_certificate, security_of
from tests.helpers.kubernetes_fits import (
    CORPUS,
    OVERLAYS,
    PLACE,
    STORE,
    K,
    assert_same_model,
    blocks_done,
    ended,
    events,
    fitted,
    job_status,
    names_of,
    peak_planned,
    ready,
    restarts,
)
from tests.helpers.kubernetes_node import apply, eventually, found, kubectl, pods
from tests.helpers.kustomize import kustomized
from tests.helpers.places import ROOT
from tests.helpers.slow_blocks import slow_program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAIRS = [f"{role}{part}.pem" for role in ("scheduler", "worker", "client") for part in ("", "-key")]
TIMES: dict[str, float] = {}


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A node with operator, store, data and secrets; the folder of the certificates."""
    node.skip_unless_possible()
    certificates = tmp_path_factory.mktemp("tls")
    make_certificates(certificates)
    with pytest.MonkeyPatch.context() as patch, node.node(), node.operator(), node.store():
        for name, value in node.S3_VARIABLES.items():
            patch.setenv(name, value)
        kubectl("delete", "secret", "nfs-dask-tls", "nfs-dask-storage", "--ignore-not-found")
        secret = ["create", "secret", "generic"]
        kubectl(*secret, "nfs-dask-tls", *[f"--from-file={certificates}/{name}" for name in ("ca.pem", *PAIRS)])
        kubectl(*secret, "nfs-dask-storage", *[f"--from-literal={k}={v}" for k, v in node.S3_VARIABLES.items()])
        slowly = {"sitecustomize.py": slow_program(seconds=0.25)}
        apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": slowly}])
        nfs.ingest(CORPUS, STORE, block_bytes=60_000)
        yield certificates
        print("\n" + transcript())


def transcript() -> str:
    """Versions and seconds, for deploy/kubernetes/README.md."""
    versions = {
        "kubernetes": json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"],
        "containerd": subprocess.check_output(["containerd", "--version"], text=True).split()[2],
        "etcd": subprocess.check_output(["etcd", "--version"], text=True).split()[2],
        "runc": subprocess.check_output(["runc", "--version"], text=True).split()[2],
        "seaweedfs": subprocess.check_output([node.FOLDER / "bin" / "weed", "version"], text=True).split()[2],
    }
    lines = [f"{name:<44} {value}" for name, value in versions.items()]
    return "\n".join([*lines, *(f"{name:<44} {seconds:6.1f} s" for name, seconds in TIMES.items())])


@pytest.fixture(scope="module")
def want() -> Any:
    """The model of a fit on this machine, in this process."""
    dataset = nfs.open_dataset(STORE, reuse=False)
    return nfs.SparseMultinomialNB(k=K, engine=nfs.SerialEngine()).fit(dataset)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """A folder in the bucket for the model and the run of a test; what the test started is gone when it ends."""
    yield f"{PLACE}/{request.node.name}"
    kubectl("delete", "daskjobs,daskclusters,jobs,networkpolicies", "--all", "--wait=false")
    eventually(lambda: not pods("dask.org/cluster-name"), 120, "no pods")


def test_the_server_takes_all_overlays() -> None:
    for overlay in sorted(OVERLAYS.iterdir()):
        said = kubectl("kustomize", overlay)
        # A Job of this old server has no podFailurePolicy; kubernetes-validate has looked at that of newer ones.
        told = kubectl("apply", "--dry-run=server", "--validate=false", "-f", "-", given=said)
        assert told.count("(server dry run)") == said.count("\nkind: ") + said.startswith("kind: "), told
    broken = kustomized(OVERLAYS / "small")[0] | {"spec": {"job": {}}}
    words = ["apply", "--dry-run=server", "--validate=false", "-f", "-"]
    assert "spec.cluster: Required value" in kubectl(*words, given=yaml.safe_dump(broken), code=1)


def test_who_runs_fits_can_do_that_and_no_more() -> None:
    kubectl("apply", "-k", ROOT / "deploy" / "kubernetes" / "access")
    who = "--as=system:serviceaccount:default:nfs-dask-fits"

    def may(*words: str) -> bool:
        result = kubectl("auth", "can-i", *words, who, code=0 if words in allowed else 1)
        return result.startswith("yes")

    allowed = {
        ("create", "daskjobs.kubernetes.dask.org"),
        ("delete", "daskclusters.kubernetes.dask.org"),
        ("create", "jobs.batch"),
        ("patch", "networkpolicies.networking.k8s.io"),
        ("get", "pods", "--subresource=log"),
    }
    refused = {
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods"),
        ("get", "pods", "--subresource=exec"),
        ("create", "roles.rbac.authorization.k8s.io"),
        ("create", "deployments.apps"),
        ("create", "daskjobs.kubernetes.dask.org", "--namespace=kube-system"),
    }
    assert all(may(*words) for words in allowed)
    assert not any(may(*words) for words in refused)
    pod = "--as=system:serviceaccount:default:default"  # what pods of a fit would be, if they had a token
    assert "no" in kubectl("auth", "can-i", "list", "pods", pod, code=1)


def test_a_job_fits_from_s3_as_planned_and_ends(place: str, want: Any) -> None:
    words = ["plan", STORE, "--method", "multinomial", "-k", K, "--workers", 2, "--threads", 1, "--kubernetes"]
    text = run(*words, "--model", f"{place}/model", "--run", f"{place}/run", "--name", "spam-fit").stdout
    manifests = [*yaml.safe_load_all(text)]
    worker = manifests[0]["spec"]["cluster"]["spec"]["worker"]["spec"]["containers"][0]
    (planned,) = [parse_bytes(entry["value"]) for entry in worker["env"] if entry["name"] == "WORKER_MEMORY"]
    began = time.monotonic()
    apply(fitted(manifests, place))
    eventually(lambda: job_status("spam-fit") == "Running", 60, "a runner")
    TIMES["DaskJob applied to runner running"] = time.monotonic() - began
    eventually(lambda: ended("spam-fit"), 300, "the job")
    TIMES["DaskJob applied to successful"] = time.monotonic() - began
    assert_same_model(place, want)
    eventually(lambda: not found("daskcluster", "spam-fit"), 60, "the cluster of the job is gone")
    assert read_status(f"{place}/run").to_json()["state"] == "finished"
    assert peak_planned(place) <= 0.6 * planned


def test_a_job_fits_without_tls_where_that_is_meant(place: str, want: Any, tmp_path: Path) -> None:
    apply(fitted(kustomized(overlay_of(tmp_path, "insecure", "job")), place))
    eventually(lambda: ended("nfs-dask"), 300, "the job")
    assert_same_model(place, want)


def test_a_worker_and_the_client_are_killed_and_the_model_is_the_same(place: str, want: Any) -> None:
    began = time.monotonic()
    apply(fitted(kustomized(OVERLAYS / "small"), place, slow=True))
    eventually(lambda: blocks_done(place) > 10, 240, "a tenth of the blocks")
    (scheduler,) = pods("dask.org/component=scheduler")
    with urllib.request.urlopen(f"http://{scheduler['status']['podIP']}:8787/metrics", timeout=10) as page:
        assert "nfs_dask_passes_total 1.0" in page.read().decode()
    (worker, *_) = pods("dask.org/component=worker")
    kubectl("delete", "pod", worker["metadata"]["name"], "--force", "--grace-period=0")
    killed = time.monotonic()
    left = worker["metadata"]["uid"]

    def both_ready() -> bool:
        return sum(ready(one) and one["metadata"]["uid"] != left for one in pods("dask.org/component=worker")) == 2

    eventually(both_ready, 120, "a new worker")
    TIMES["worker killed to its successor ready"] = time.monotonic() - killed
    before = blocks_done(place)
    eventually(lambda: blocks_done(place) > before, 120, "more blocks")
    kubectl("exec", "nfs-dask-runner", "--", "python", "-c", KILL_CLIENT)
    eventually(lambda: ended("nfs-dask"), 300, "the job")
    TIMES["job with both killed, applied to successful"] = time.monotonic() - began
    assert "begin-or-resume: exit code 137; attempt 2 of 6" in kubectl("logs", "nfs-dask-runner")
    told = events(place)
    assert {"started", "worker_lost", "resumed", "pass_resumed", "finished"} <= names_of(told)
    assert_same_model(place, want)


KILL_CLIENT = """
import psutil
(client,) = [p for p in psutil.process_iter() if "fit" in p.cmdline() and "python" in p.cmdline()[0]]
client.kill()
"""


def test_a_client_that_has_to_leave_its_node_goes_on_on_another(place: str, want: Any) -> None:
    manifests = fitted(kustomized(OVERLAYS / "spot"), place, slow=True)
    for manifest in manifests:
        if manifest["kind"] == "DaskCluster":
            manifest["spec"]["idleTimeout"] = 30
    began = time.monotonic()
    apply(manifests, "--validate=false")
    eventually(lambda: blocks_done(place) > 10, 240, "a tenth of the blocks")
    (first,) = pods("job-name=nfs-dask")
    kubectl("delete", "pod", first["metadata"]["name"], "--wait=false")
    eventually(lambda: found("job", "nfs-dask")["status"].get("succeeded") == 1, 400, "the job")
    TIMES["Job whose pod was deleted, to complete"] = time.monotonic() - began
    told = events(place)
    assert {"started", "interrupted", "resumed", "finished"} <= names_of(told)
    assert_same_model(place, want)
    done = time.monotonic()
    eventually(lambda: not found("daskcluster", "nfs-dask"), 120, "the idle cluster is gone")
    TIMES["end of the Job to an idle cluster deleted (30)"] = time.monotonic() - done


def test_a_client_whose_node_is_gone_without_a_word_goes_on_on_another(place: str, want: Any) -> None:
    began = time.monotonic()
    apply(fitted(kustomized(OVERLAYS / "spot"), place, slow=True), "--validate=false")
    eventually(lambda: blocks_done(place) > 10, 240, "a tenth of the blocks")
    (first,) = pods("job-name=nfs-dask")
    with node.lost(first):
        since = time.monotonic()
        (second,) = eventually(lambda: [p for p in pods("job-name=nfs-dask") if ready(p)], 120, "a pod in its place")
        assert second["metadata"]["name"] != first["metadata"]["name"]
        eventually(lambda: "resumed" in names_of(events(place)), 400, "a client that goes on", every=1)
    TIMES["client gone without a word, to another at work"] = taken = time.monotonic() - since
    assert taken > WATCHED_BEATS * REMOTE_BEAT_SECONDS  # for so long the second has looked whether the first is alive
    eventually(lambda: found("job", "nfs-dask")["status"].get("succeeded") == 1, 400, "the job")
    TIMES["Job whose client was gone, to complete"] = time.monotonic() - began
    assert "interrupted" not in names_of(events(place))  # nobody had told the first
    assert_same_model(place, want)


def test_workers_beyond_their_memory_are_begun_again_and_the_model_is_the_same(
    place: str, want: Any, cluster: Path
) -> None:
    """Of one the process that counts, of the other the one that watches it, whose end is that of the container."""
    manifests = fitted(kustomized(OVERLAYS / "small"), place, slow=True)
    worker = manifests[0]["spec"]["cluster"]["spec"]["worker"]["spec"]["containers"][0]
    worker["env"] = [one | ({"value": "1GiB"} if one["name"] == "WORKER_MEMORY" else {}) for one in worker["env"]]
    worker["resources"]["limits"]["memory"] = "1536Mi"
    apply(manifests)
    eventually(lambda: blocks_done(place) > 10, 240, "a tenth of the blocks")
    (scheduler,) = pods("dask.org/component=scheduler")
    with Client(f"tls://{scheduler['status']['podIP']}:8786", security=security_of(cluster), timeout=60) as client:
        counting, watched = sorted(client.scheduler_info()["workers"])
        take_much(client, counting, nanny=False)
        eventually(lambda: "worker_lost" in names_of(events(place)), 120, "a worker that is lost")
        assert restarts() == {}
        take_much(client, watched, nanny=True)
        eventually(lambda: restarts() == {"OOMKilled": 1}, 60, "a container that is begun again")
    ended_at = time.monotonic()
    eventually(lambda: all(ready(one) for one in pods("dask.org/component=worker")), 120, "both workers")
    TIMES["container of a worker ended, to ready again"] = time.monotonic() - ended_at
    eventually(lambda: ended("nfs-dask"), 300, "the job")
    assert_same_model(place, want)


def take_much(client: Client, worker: str, nanny: bool) -> None:
    """Have a process of a worker fill twice the memory that Dask holds a worker to; it does not live to answer."""
    client.run(operator.mul, b"x", 2 * GiB, workers=[worker], nanny=nanny, on_error="ignore")


def test_a_cluster_takes_workers_for_work_and_gives_them_back(place: str, cluster: Path) -> None:
    manifests = fitted(kustomized(OVERLAYS / "cluster"), place)
    for manifest in manifests:
        if manifest["kind"] == "DaskAutoscaler":
            manifest["spec"]["maximum"] = 2
        if manifest["kind"] == "DaskCluster":
            manifest["spec"]["idleTimeout"] = 60
    apply(manifests)
    (scheduler,) = eventually(lambda: [p for p in pods("dask.org/component=scheduler") if ready(p)], 120, "a scheduler")
    address = scheduler["status"]["podIP"]
    assert_serves_little(address)
    assert_turns_away_who_has_no_certificate(address, cluster)
    assert replicas() == 1
    with Client(f"tls://{address}:8786", security=security_of(cluster), timeout=60) as client:
        tasks = client.map(time.sleep, [1.0 + i / 1000 for i in range(60)])
        began = time.monotonic()
        eventually(lambda: replicas() == 2, 90, "a second worker")
        TIMES["work submitted to a second worker asked for"] = time.monotonic() - began
        client.gather(tasks)
    began = time.monotonic()
    eventually(lambda: replicas() == 1, 120, "one worker")
    TIMES["work done to one worker"] = time.monotonic() - began
    eventually(lambda: not found("daskcluster", "nfs-dask"), 180, "the idle cluster is gone")


def replicas() -> int:
    return int(found("daskworkergroup", "nfs-dask-default")["spec"]["worker"]["replicas"])


def test_a_container_beyond_its_memory_is_ended_and_the_job_fails(place: str) -> None:
    manifests = fitted(kustomized(OVERLAYS / "small"), place)
    job = manifests[0]["spec"]["job"]["spec"]["containers"][0]
    job["resources"] = {"limits": {"memory": "48Mi"}, "requests": {"memory": "48Mi", "cpu": "50m"}}
    job["env"].append({"name": "PAUSE", "value": "1"})
    apply(manifests)
    eventually(lambda: job_status("nfs-dask") == "Failed", 240, "a job that has failed")
    (runner,) = pods("dask.org/component=job-runner")
    last = runner["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("OOMKilled", 137)
    eventually(lambda: not found("daskcluster", "nfs-dask"), 60, "its cluster is gone")
