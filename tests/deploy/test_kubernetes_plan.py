"""``nfs-dask plan --kubernetes``: a manifest whose workers have what the plan takes, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cli.plan import fit_words
from nfs_dask.cluster.manifests import FitJob, WorkerSize
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError
from nfs_dask.units import GiB, MiB, parse_bytes
from tests.helpers.commands import as_json, run

PLACES = ["--model", "s3://bucket/model", "--run", "s3://bucket/run"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planned") / "mail.zarr"
    nfs.ingest(GeneratedCorpus(500, 300, 2, words_per_document=10, block_rows=100), path)
    return path


def containers(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Those of the job, its scheduler and its workers, by name."""
    cluster = job["spec"]["cluster"]["spec"]
    pods = [job["spec"]["job"]["spec"], *(cluster[part]["spec"] for part in ("scheduler", "worker"))]
    return {one["name"]: one for pod in pods for one in pod["containers"]}


def value_of(container: dict[str, Any], name: str) -> str:
    (found,) = [entry["value"] for entry in container["env"] if entry["name"] == name]
    return str(found)


def test_the_manifest_gives_workers_what_the_plan_takes(store: Path) -> None:
    words = [
        "--method",
        "bernoulli",
        "-k",
        7,
        "--binarize",
        2,
        "--where",
        "label=cooking",
        "--workers",
        3,
        "--threads",
        4,
    ]
    given = ["--kubernetes", *PLACES, "--name", "spam-fit", "--image", "registry/nfs-dask:1.2"]
    told = as_json("plan", store, *words, *given)
    job, policy, *budgets = told["manifests"]
    found = containers(job)
    assert job["metadata"]["name"] == policy["metadata"]["name"] == "spam-fit"
    assert [one["metadata"]["name"] for one in budgets] == [
        f"spam-fit-{of}" for of in ("scheduler", "client", "worker")
    ]
    assert {one["spec"]["selector"]["matchLabels"]["dask.org/cluster-name"] for one in budgets} == {"spam-fit"}
    assert {one["image"] for one in found.values()} == {"registry/nfs-dask:1.2"}
    assert found["job"]["args"][-8:] == [
        "--method",
        "bernoulli",
        "-k",
        "7",
        "--binarize",
        "2.0",
        "--where",
        "label=cooking",
    ]
    assert value_of(found["job"], "STORE") == str(store)
    assert value_of(found["job"], "WORKERS") == "3" == str(job["spec"]["cluster"]["spec"]["worker"]["replicas"])
    assert value_of(found["worker"], "WORKER_THREADS") == "4" == found["worker"]["resources"]["requests"]["cpu"]
    limit = parse_bytes(value_of(found["worker"], "WORKER_MEMORY"))
    assert limit == told["memory_limit"]
    plan = Plan.from_json(told["plan"])
    assert (plan.resources.workers, plan.resources.threads) == (3, 4)
    assert replace(plan, resources=replace(plan.resources, memory_limit=limit)).fits


@pytest.mark.slow
def test_what_is_printed_is_yaml_and_the_rest_is_said_beside_it(store: Path) -> None:
    result = run("plan", store, "--method", "l1", "-k", 5, "--kubernetes", *PLACES)
    job, policy, *budgets = yaml.safe_load_all(result.stdout)
    assert (job["kind"], policy["kind"]) == ("DaskJob", "NetworkPolicy")
    assert {one["kind"] for one in budgets} == {"PodDisruptionBudget"}
    assert "4 worker(s) x 2 thread(s)" in result.stderr


@pytest.mark.slow
def test_a_limit_that_the_plan_does_not_fit_into_is_refused_with_one_that_would(store: Path) -> None:
    words = ["plan", store, "--method", "multinomial", "--kubernetes", *PLACES]
    assert "Give each worker" in run(*words, "--memory-limit", "260MiB", code=4).stderr
    kept = as_json(*words, "--memory-limit", "3GiB")
    assert value_of(containers(kept["manifests"][0])["worker"], "WORKER_MEMORY") == "3072MiB"
    assert kept["container"] == 3584 * MiB


def test_a_store_on_this_machine_and_an_image_without_a_digest_are_warned_of(store: Path) -> None:
    words = ["plan", store, "--method", "multinomial", "--kubernetes", *PLACES, "--json", "--image"]
    told = " ".join(run(*words, "registry/nfs-dask:1.2").stderr.split())
    assert f"{store} is a path of this machine" in told
    assert "registry/nfs-dask:1.2 may change while the job runs" in told
    assert "may change" not in run(*words, "registry/nfs-dask:1.2@sha256:" + "0" * 64).stderr


def test_storage_that_is_spilled_to_is_asked_for() -> None:
    job = FitJob("a", "b", "c", [], 2, WorkerSize(1, 2 * GiB), client_nbytes=0).manifests()[0]
    pod = job["spec"]["cluster"]["spec"]["worker"]["spec"]
    asked = pod["containers"][0]["resources"]
    spilled = pod["volumes"][0]["emptyDir"]["sizeLimit"]
    assert asked["limits"]["ephemeral-storage"] == asked["requests"]["ephemeral-storage"] == "6Gi"
    assert spilled == "5Gi"


def test_the_smallest_worker_for_a_peak_has_room_for_it() -> None:
    for peak in (1, 300 * MiB, GiB, 10 * GiB + 1):
        size = WorkerSize.for_peak(peak, threads=2)
        assert 0.6 * size.memory_limit >= peak
        assert size.memory_limit == GiB or 0.6 * (size.memory_limit - 256 * MiB) < peak
        assert size.container - size.memory_limit >= 512 * MiB


def test_a_larger_client_gets_a_larger_container() -> None:
    job = FitJob("a", "b", "c", [], 2, WorkerSize(1, GiB), client_nbytes=5 * GiB)
    assert containers(job.manifests()[0])["job"]["resources"]["limits"]["memory"] == "5888Mi"


@pytest.mark.parametrize("name", ["Spam", "1fit", "-fit", "fit-", "a" * 39, "a.b", ""])
def test_names_that_kubernetes_would_refuse_are_refused_here(name: str) -> None:
    with pytest.raises(InputError, match="no name for a job"):
        FitJob("a", "b", "c", [], 2, WorkerSize(1, GiB), 0, name=name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kubernetes", "--method", "multinomial"], "a job needs places that outlive it"),
        (["--model", "s3://bucket/model"], "only with --kubernetes: --model"),
        (["--kubernetes", *PLACES, "--method", "counts"], "a job fits a model; say which with --method"),
        (["--kubernetes", *PLACES, "--method", "l2", "--scheduler", "tcp://127.0.0.1:1"], "leave --scheduler out"),
        (
            ["--kubernetes", "--method", "l2", "--model", "s3://me:key@b/m", "--run", "r"],
            "s3://***@b/m has a key in it",
        ),
    ],
)
def test_what_would_not_be_a_job_is_wrong_usage(words: list[str], said: str) -> None:
    result = run("plan", "s3://bucket/mail.zarr", *words, code=2)
    assert said in " ".join(result.stderr.split())


def test_options_are_those_of_fit() -> None:
    given = {"k": 0.01, "binarize": 1.5, "regions": 3, "covariance": "full", "class_weight": {"spam": 2.0, "ham": 1.0}}
    words = fit_words("hybrid", given, "folder", {"split": ["train", "more"]})
    assert set(zip(words[::2], words[1::2], strict=True)) == {
        ("--method", "hybrid"),
        ("-k", "0.01"),
        ("--binarize", "1.5"),
        ("--regions", "3"),
        ("--covariance", "full"),
        ("--class-weight", "spam=2.0,ham=1.0"),
        ("--label-column", "folder"),
        ("--where", "split=train"),
        ("--where", "split=more"),
    }
