"""Overlays are what kustomize makes of them, what `plan --kubernetes` prints, and what the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from tests.helpers.deployed import (
    DEPLOY,
    FIT,
    MANIFESTS,
    OVERLAYS,
    cluster_containers,
    command_of,
    overlay_of,
    parse,
)
from tests.helpers.kustomize import kustomized


@pytest.fixture(scope="module")
def insecure(tmp_path_factory):
    return overlay_of(tmp_path_factory.mktemp("overlays"), "insecure", "job")


def test_overlays_are_what_they_are_called():
    kinds = {name: sorted(found["kind"] for found in manifests) for name, manifests in MANIFESTS.items()}
    budgets = ["PodDisruptionBudget"] * 3
    assert kinds == {
        "small": ["DaskJob", "NetworkPolicy", *budgets],
        "large": ["DaskJob", "NetworkPolicy", *budgets],
        "plan": ["DaskJob", "NetworkPolicy", *budgets],
        "spot": ["DaskCluster", "Job", "NetworkPolicy", *budgets],
        "cluster": ["DaskAutoscaler", "DaskCluster", "NetworkPolicy", *budgets],
    }


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: path.name)
def test_kustomize_says_the_same(folder):
    assert by_kind(kustomized(folder)) == by_kind(told_by_kustomize(folder))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_takes_tls_away_in_the_same_way(insecure):
    assert by_kind(kustomized(insecure)) == by_kind(told_by_kustomize(insecure.resolve()))


def told_by_kustomize(folder):
    result = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    return [*yaml.safe_load_all(result.stdout)]


def by_kind(manifests):
    return {(found["kind"], found["metadata"]["name"]): found for found in manifests}


def test_what_plan_prints_is_the_small_overlay_with_other_numbers():
    """Both are made of the same files: with the numbers of the overlay they are equal."""
    assert by_kind(FIT.manifests()) == by_kind(MANIFESTS["small"])


def test_without_tls_nothing_of_it_is_left_and_the_client_is_told(insecure):
    (job,) = [found for found in kustomized(insecure) if found["kind"] == "DaskJob"]
    assert "tls" not in yaml.safe_dump(job).lower()
    assert job["spec"]["job"]["spec"]["containers"][0]["args"][-1] == "--insecure"
    assert yaml.safe_dump(job).count("tcp://nfs-dask-scheduler:8786") == 2
    for container in [job["spec"]["job"]["spec"]["containers"][0], *cluster_containers(job)]:
        assert parse(command_of(container))


def test_the_example_of_the_page_is_the_small_overlay_with_places_of_ones_own(tmp_path):
    page = (DEPLOY / "kubernetes/README.md").read_text()
    mine, composed = re.findall(r"```yaml\n(.+?)```", page, re.DOTALL)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    for name, text in (("mine", mine), ("composed", composed)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text(text)
    (job,) = [found for found in kustomized(tmp_path / "mine") if found["kind"] == "DaskJob"]
    (container,) = job["spec"]["job"]["spec"]["containers"]
    params = parse(command_of(container))
    assert (params["store"], params["model"], params["run"]) == (
        "s3://mine/mail.zarr",
        "s3://mine/spam.model",
        "s3://mine/run",
    )
    (image,) = {one["image"] for one in [container, *cluster_containers(job)]}
    assert re.fullmatch(r"registry\.example\.org/nfs-dask@sha256:[0-9a-f]{64}", image)
    composition = [found["kind"] for found in kustomized(tmp_path / "composed")]
    assert composition == ["DaskCluster", "NetworkPolicy", *["PodDisruptionBudget"] * 3, "Job"]


def test_components_give_a_job_a_volume_and_prometheus_its_metrics(tmp_path):
    folder = overlay_of(tmp_path, "spool", "prometheus", "job")
    found = {kind: one for (kind, _), one in by_kind(kustomized(folder)).items()}
    job, claim, monitor = (found[kind] for kind in ("DaskJob", "PersistentVolumeClaim", "PodMonitor"))
    pods = [job["spec"]["job"]["spec"], job["spec"]["cluster"]["spec"]["worker"]["spec"]]
    for pod in pods:
        volume = {"name": "spool", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        assert volume in pod["volumes"]
        assert {"name": "spool", "mountPath": "/spool"} in pod["containers"][0]["volumeMounts"]
    assert parse(command_of(pods[0]["containers"][0]))["run"] == "/spool/run"
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = {}
    for container in cluster_containers(job):
        ports |= {port["containerPort"]: port["name"] for port in container["ports"]}
    admitted = {one["port"] for one in found["NetworkPolicy"]["spec"]["ingress"][-1]["ports"]}
    assert admitted == {number for number, name in ports.items() if name == endpoint["port"]} == {8787, 8788}
