"""The values for the charts `dask` and `daskhub`, as helm renders them, and the pods that a gateway makes of them.

The charts are not part of this repository, nor of any package. To try the values on them:

helm pull dask --repo https://helm.dask.org --untar --untardir CHARTS
helm pull daskhub --repo https://helm.dask.org --untar --untardir CHARTS
NFS_DASK_CHARTS=CHARTS python -m pytest -m slow tests/deploy/test_helm_charts.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from nfs_dask.units import MiB, parse_bytes
from tests.helpers.deployed import DEPLOY, parse

pytestmark = pytest.mark.slow

VALUES = DEPLOY / "helm"
KUBERNETES = ("1.33", kubernetes_validate.latest_version())


def rendered(chart: str, *words: str, code: int = 0) -> str:
    """What helm makes of a chart with our values, or what it says where that is to fail."""
    charts = os.environ.get("NFS_DASK_CHARTS", "")
    if shutil.which("helm") is None or not (Path(charts) / chart / "Chart.yaml").exists():
        pytest.skip(f"needs helm, and NFS_DASK_CHARTS to name a folder with the chart {chart}")
    release = {"dask": "nfs-dask"}.get(chart, chart)
    given = ["helm", "template", release, f"{charts}/{chart}", "--values", f"{VALUES}/{chart}-values.yaml", *words]
    result = subprocess.run(given, capture_output=True, text=True, timeout=60)
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout


def of_kind(kind: str, text: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(text) if one and one["kind"] == kind}


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_chart_dask_makes_a_scheduler_and_workers_of_the_image(version: str) -> None:
    text = rendered("dask")
    found = of_kind("Deployment", text)
    assert set(found) == {"nfs-dask-scheduler", "nfs-dask-worker"}
    for deployment in found.values():
        kubernetes_validate.validate(deployment, version, strict=True)
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["image"] == "nfs-dask:0.1.0"
        ports = {port["containerPort"] for port in container["ports"]}
        assert all(container[probe]["httpGet"]["port"] in ports for probe in ("livenessProbe", "readinessProbe"))
    scheduler, worker = (found[f"nfs-dask-{part}"]["spec"]["template"]["spec"]["containers"][0]["args"]
                         for part in ("scheduler", "worker"))  # fmt: skip
    assert parse(["dask", *scheduler[0].split("-")[1:], *scheduler[1:]])["protocol"] == "tls"
    params = parse(["dask", *worker[0].split("-")[1:], *worker[1:]])
    assert parse_bytes(params["memory_limit"]) == 3584 * MiB
    (service,) = of_kind("Service", text).values()
    address = f"tls://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert params["scheduler"] == address


def test_keys_that_the_chart_of_the_gateway_does_not_know_are_refused() -> None:
    """So that all of ours, which are not refused, are known to it."""
    assert rendered("daskhub")
    said = rendered("daskhub", "--set", "dask-gateway.gateway.backend.worker.thread=2", code=1)
    assert "thread" in said and "not allowed" in said
    said = rendered("daskhub", "--set", "jupyterhub.singleuser.memory.limits=2G", code=1)
    assert "limits" in said and "not allowed" in said


def test_users_reach_the_gateway_through_the_policies_of_the_hub() -> None:
    text = rendered("daskhub")
    (traefik,) = [one for name, one in of_kind("Deployment", text).items() if name.startswith("traefik-")]
    labels = traefik["spec"]["template"]["metadata"]["labels"]
    ports = {port["containerPort"] for port in traefik["spec"]["template"]["spec"]["containers"][0]["ports"]}
    policies = {one["spec"]["podSelector"]["matchLabels"]["component"]: one["spec"]
                for one in of_kind("NetworkPolicy", text).values()}  # fmt: skip
    for component in ("hub", "proxy", "singleuser-server"):
        (rule,) = [one for one in policies[component]["egress"] if "podSelector" in one["to"][0]]
        assert rule["to"][0]["podSelector"]["matchLabels"].items() <= labels.items(), component
        assert {one["port"] for one in rule["ports"]} <= ports, component


@pytest.mark.parametrize("version", KUBERNETES)
def test_a_gateway_makes_pods_of_the_configuration_that_daskhub_gives_it(version: str) -> None:
    text = rendered("daskhub")
    pytest.importorskip("kubernetes_asyncio", reason='needs "dask-gateway-server[kubernetes]"')
    made = {name: gateway_pod(text, is_worker) for name, is_worker in (("scheduler", False), ("worker", True))}
    for role, pod in made.items():
        kubernetes_validate.validate(pod, version, strict=True)
        (container,) = pod["spec"]["containers"]
        assert (container["image"], container["args"][:2]) == ("nfs-dask:0.1.0", ["dask", role])
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/etc/dask-credentials/"}
        assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["spec"]["volumes"]}
        assert {"name": "MALLOC_TRIM_THRESHOLD_", "value": "65536"} in container["env"]
    (worker,) = made["worker"]["spec"]["containers"]
    assert worker["args"][worker["args"].index("--nthreads") + 1] == "2"
    assert worker["envFrom"] == [{"secretRef": {"name": "nfs-dask-storage", "optional": True}}]


def gateway_pod(text: str, is_worker: bool) -> dict[str, Any]:
    """A pod as the gateway's own controller makes it, of the configuration in a chart."""
    kubernetes = "dask_gateway_server.backends.kubernetes"
    KubeClusterConfig = pytest.importorskip(f"{kubernetes}.backend").KubeClusterConfig
    KubeController = pytest.importorskip(f"{kubernetes}.controller").KubeController
    Config = pytest.importorskip("traitlets.config").Config

    (code,) = [one["data"]["dask_gateway_config.py"] for one in of_kind("ConfigMap", text).values()
               if "dask_gateway_config.py" in one.get("data", {})]  # fmt: skip
    config = Config()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HUB_SERVICE_HOST", "HUB_SERVICE_PORT"):  # as Kubernetes tells a pod where the hub is
            patch.setenv(name, "1")
        patch.setattr(sys, "path", [*sys.path])
        exec(code, {"c": config, "__file__": "/etc/dask-gateway/dask_gateway_config.py"})
    config.KubeController = Config(gateway_instance="daskhub", api_url="http://gateway/api")
    pod: dict[str, Any] = KubeController(config=config).make_pod(
        "default", "c1", KubeClusterConfig(config=config), is_worker
    )
    return pod
