"""What is ours to get right in manifests, and no schema says."""

from __future__ import annotations

import importlib
import re

import pytest
import yaml

import nfs_dask
from nfs_dask.cluster.manifests import FitJob, WorkerSize
from nfs_dask.units import GiB, parse_bytes
from tests.helpers.deployed import (
    ADDRESS,
    MANIFESTS,
    cluster_containers,
    cluster_spec,
    command_of,
    containers,
    job_specs,
    of_kind,
    parse,
    pods,
    values_of,
)


def test_selectors_find_the_pods_of_their_cluster():
    named = FitJob("a", "b", "c", [], 2, WorkerSize(1, GiB), 0, name="spam-fit").manifests()
    for manifests in [*MANIFESTS.values(), named]:
        (cluster,) = [found for found in manifests if found["kind"] in ("DaskCluster", "DaskJob")]
        name = cluster["metadata"]["name"]
        selector = cluster_spec(cluster)["scheduler"]["service"]["selector"]
        assert selector == {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
        (policy,) = [found["spec"] for found in manifests if found["kind"] == "NetworkPolicy"]
        assert policy["podSelector"]["matchLabels"] == {"dask.org/cluster-name": name}
        own, operator = policy["ingress"]
        assert own == {"from": [{"podSelector": policy["podSelector"]}]}
        assert operator["from"] == [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dask-operator"}},
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "dask-kubernetes-operator"}},
            }
        ]
        assert operator["ports"] == [
            {"protocol": "TCP", "port": 8787}
        ]  # of health, metrics and the operator's questions
        worker = cluster_spec(cluster)["worker"]["spec"]["containers"][0]
        assert values_of(worker)["DASK_SCHEDULER_ADDRESS"] == f"tls://{name}-scheduler:8786"


def test_pods_of_which_there_is_one_are_not_drained_and_workers_lie_apart():
    for name, manifests in MANIFESTS.items():
        budgets = [one["spec"] for one in manifests if one["kind"] == "PodDisruptionBudget"]
        allowed = {
            one["selector"]["matchLabels"]["dask.org/component"]: one.get("minAvailable", -one.get("maxUnavailable", 0))
            for one in budgets
        }
        assert allowed == {"scheduler": 1, "job-runner": 1, "worker": -1}, name
        (cluster,) = [found for found in manifests if found["kind"] in ("DaskCluster", "DaskJob")]
        (spread,) = cluster_spec(cluster)["worker"]["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == budgets[-1]["selector"]["matchLabels"]


def test_images_have_the_version_of_the_package():
    assert {container["image"] for container in containers()} == {f"nfs-dask:{nfs_dask.__version__}"}


def test_storage_for_what_is_spilled_is_asked_for():
    for pod in pods():
        (container,) = pod["containers"]
        (spilled,) = [one["emptyDir"]["sizeLimit"] for one in pod["volumes"] if one["name"] == "tmp"]
        asked, allowed = (container["resources"][of]["ephemeral-storage"] for of in ("requests", "limits"))
        assert asked == allowed
        assert parse_bytes(allowed + "B") >= parse_bytes(spilled + "B") + (1 << 30)


def test_a_job_reaches_the_scheduler_of_its_own_cluster():
    for name, manifests in MANIFESTS.items():
        for job in [found for found in manifests if found["kind"] in ("DaskJob", "Job")]:
            pod = job["spec"]["job"]["spec"] if job["kind"] == "DaskJob" else job["spec"]["template"]["spec"]
            assert values_of(pod["containers"][0])["DASK_SCHEDULER_ADDRESS"] == ADDRESS, name
    (labels,) = [job["spec"]["template"]["metadata"]["labels"] for job in of_kind("Job")]
    assert labels["dask.org/cluster-name"] == "nfs-dask"  # the policy lets it through
    assert "dask.org/component" not in labels  # the operator takes none of its pods for its own


def test_every_container_is_locked_down():
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000
        assert pod["automountServiceAccountToken"] is False
        written = {volume["name"] for volume in pod["volumes"] if volume.get("emptyDir", {}).get("sizeLimit")}
        assert written == {"tmp"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            mounts = {mount["name"]: (mount["mountPath"], mount.get("readOnly")) for mount in container["volumeMounts"]}
            assert mounts == {"tmp": ("/tmp", None), "tls": ("/tls", True)}
            assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]


def test_each_pod_sees_its_own_key_only():
    roles = {"scheduler": "SCHEDULER", "worker": "WORKER", "job": "CLIENT"}
    for pod in pods():
        (container,) = pod["containers"]
        role = roles[container["name"]]
        (secret,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
        own = ["ca.pem", f"{role.lower()}.pem", f"{role.lower()}-key.pem"]
        assert [item["path"] for item in secret["items"]] == own
        assert secret["defaultMode"] == 0o440
        values = values_of(container)
        tls = {name.removeprefix("DASK_DISTRIBUTED__COMM__"): values[name] for name in values if "COMM__" in name}
        assert tls == {
            "REQUIRE_ENCRYPTION": "true",
            "TLS__CA_FILE": "/tls/ca.pem",
            f"TLS__{role}__CERT": f"/tls/{own[1]}",
            f"TLS__{role}__KEY": f"/tls/{own[2]}",
        }


def test_no_secret_is_in_a_manifest():
    for container in containers():
        assert container["envFrom"] == [{"secretRef": {"name": "nfs-dask-storage", "optional": True}}]
        paths = [value for name, value in values_of(container).items() if re.search("KEY|SECRET|TOKEN", name)]
        assert all(value.startswith("/tls/") for value in paths)


def test_a_worker_is_restarted_by_dask_before_kubernetes_kills_it():
    for manifest in of_kind("DaskCluster", "DaskJob"):
        _, worker = cluster_containers(manifest)
        limit = parse_bytes(worker["resources"]["limits"]["memory"] + "B")
        told = parse_bytes(values_of(worker)["WORKER_MEMORY"])
        assert 256 << 20 <= limit - told <= 1 << 30
        assert worker["resources"]["requests"]["cpu"] == values_of(worker)["WORKER_THREADS"]
        assert values_of(worker)["MALLOC_TRIM_THRESHOLD_"] == "65536"


def test_whatever_is_started_ends():
    for cluster in of_kind("DaskCluster"):
        assert 0 < cluster["spec"]["idleTimeout"] <= 3600
    for job in job_specs():
        assert 0 < job["activeDeadlineSeconds"] <= 86400
    for scaled in of_kind("DaskAutoscaler"):
        assert 1 <= scaled["spec"]["minimum"] < scaled["spec"]["maximum"]
    (routes,) = {values_of(cluster_containers(one)[0])["DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES"]
                 for one in of_kind("DaskCluster", "DaskJob")}  # fmt: skip
    assert "distributed.http.scheduler.api" in routes  # where the operator asks how long it has been idle
    for module in yaml.safe_load(routes):
        importlib.import_module(module)


def test_only_workers_go_to_spot_nodes():
    (cluster,) = [found for found in MANIFESTS["spot"] if found["kind"] == "DaskCluster"]
    assert cluster["spec"]["worker"]["spec"]["tolerations"]
    assert "tolerations" not in cluster["spec"]["scheduler"]["spec"]
    assert all("tolerations" not in pod for pod in job_specs())


@pytest.mark.parametrize("container", containers(), ids=lambda c: c["name"])
def test_click_accepts_what_containers_run(container):
    assert parse(command_of(container))


def test_jobs_fit_what_they_say():
    for manifests in MANIFESTS.values():
        clusters = [cluster_spec(found) for found in manifests if found["kind"] in ("DaskCluster", "DaskJob")]
        for job in [found for found in manifests if found["kind"] in ("DaskJob", "Job")]:
            pod = job["spec"]["job"]["spec"] if job["kind"] == "DaskJob" else job["spec"]["template"]["spec"]
            params = parse(command_of(pod["containers"][0]))
            assert params["store"] == "s3://bucket/mail.zarr"
            assert params["model"] == "s3://bucket/model"
            assert params["run"] == "s3://bucket/run"
            assert params["scheduler"] == ADDRESS
            assert params["workers"] == clusters[0]["worker"]["replicas"]
