"""What tests of a node of Kubernetes apply, what they see of it, and what they do to its pods."""

from __future__ import annotations

import copy
import json
import uuid
from typing import Any

import numpy as np

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.run_status import read_status
from nfs_dask.errors import NfsDaskError
from nfs_dask.files.folder import Folder
from tests.helpers.kubernetes_node import found, kubectl, pods
from tests.helpers.places import ROOT

OVERLAYS = ROOT / "deploy" / "kubernetes" / "overlays"
CORPUS = GeneratedCorpus(40000, 3000, 3, words_per_document=30, block_rows=1000)
PLACE = f"s3://bucket/{uuid.uuid4().hex[:8]}"  # a node that stays up has a bucket that does
STORE, K = f"{PLACE}/mail.zarr", 100


def assert_same_model(place: str, want: Any) -> None:
    got = nfs.load_model(f"{place}/model")
    assert got.objective_ == want.objective_
    assert got.get_support(indices=True).tolist() == want.get_support(indices=True).tolist()
    for name in ("feature_log_prob_", "class_log_prior_"):
        assert np.array_equal(getattr(got, name), getattr(want, name)), f"{name}, to the bit"


# What is applied: the manifests as they come, on a node of two processors.


def fitted(manifests: list[dict[str, Any]], place: str, slow: bool = False) -> list[dict[str, Any]]:
    """Manifests with the places of a test, two workers of a thread, and requests that fit on this node."""
    found = copy.deepcopy(manifests)
    for manifest in found:
        if "worker" in manifest["spec"]:
            manifest["spec"]["worker"]["replicas"] = min(2, manifest["spec"]["worker"]["replicas"])
        if manifest["kind"] == "DaskJob":
            manifest["spec"]["cluster"]["spec"]["worker"]["replicas"] = 2
        for pod in pods_of(manifest):
            (container,) = pod["containers"]
            container["resources"]["requests"] |= {"cpu": "50m", "memory": "256Mi"}
            places = {"STORE": STORE, "MODEL": f"{place}/model", "RUN": f"{place}/run", "WORKERS": "2"}
            for entry in container["env"]:
                entry["value"] = {**places, "WORKER_THREADS": "1"}.get(entry["name"], entry["value"])
            container["args"] = [str(K) if word == "1000" else word for word in container["args"]]
            if slow:  # and not from statistics that an earlier test has kept
                container["args"] += ["--no-cache"] if container["name"] == "job" else []
                container["env"].append({"name": "PYTHONPATH", "value": "/slow"})
                container["volumeMounts"] = [*container["volumeMounts"], {"name": "slow", "mountPath": "/slow"}]
                pod["volumes"].append({"name": "slow", "configMap": {"name": "slow"}})
    return found


def pods_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"]
    if manifest["kind"] == "Job":
        return [spec["template"]["spec"]]
    if manifest["kind"] == "DaskJob":
        inner = spec["cluster"]["spec"]
        return [spec["job"]["spec"], inner["scheduler"]["spec"], inner["worker"]["spec"]]
    return [spec["scheduler"]["spec"], spec["worker"]["spec"]] if manifest["kind"] == "DaskCluster" else []


def job_status(name: str) -> str:
    return str(found("daskjob", name).get("status", {}).get("jobStatus"))


def ended(name: str) -> bool:
    status = job_status(name)
    assert status != "Failed", kubectl("logs", f"{name}-runner")
    return status == "Successful"


def blocks_done(place: str) -> int:
    """How many blocks of a run have been counted."""
    try:
        work = read_status(f"{place}/run").to_json()["work"]
    except NfsDaskError:  # not begun
        return 0
    return int(work["done"]) if work else 0


def events(place: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Folder.of(f"{place}/run").read("events.jsonl").splitlines()]


def names_of(events: list[dict[str, Any]]) -> set[str]:
    return {one["event"] for one in events}


def peak_planned(place: str) -> int:
    """Most memory of a worker that passes were planned for, with what workers took when they were warm there."""
    return max(one["peak_nbytes"] for one in events(place) if one["event"] == "pass_planned")


def ready(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and all(one["ready"] for one in statuses) and "deletionTimestamp" not in pod["metadata"]


def restarts() -> dict[str, int]:
    """How often containers of workers were begun again, by what had ended them."""
    statuses = [one for pod in pods("dask.org/component=worker") for one in pod["status"]["containerStatuses"]]
    again = [one for one in statuses if one["restartCount"]]
    return {one["lastState"]["terminated"]["reason"]: one["restartCount"] for one in again}
