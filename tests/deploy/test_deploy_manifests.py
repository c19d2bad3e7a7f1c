"""What is in deploy/ is accepted by the operator's schemas, by those of Kubernetes, and by the commands it runs."""

from __future__ import annotations

import copy
import importlib
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import click
import jsonschema
import kubernetes_validate
import pytest
import yaml

from nfs_dask.cli.main import cli

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
KUBERNETES = "1.33"
OPERATORS = "kubernetes.dask.org/v1"

ADDRESS = "tcp://nfs-dask-scheduler.default.svc.cluster.local:8786"
SET_BY_OPERATOR = {"DASK_SCHEDULER_ADDRESS": ADDRESS, "DASK_WORKER_NAME": "nfs-dask-default-worker-0"}


def documents():
    return [found for path in MANIFESTS for found in yaml.safe_load_all(path.read_text())]


def of_kind(*kinds):
    return [found for found in documents() if found["kind"] in kinds]


def cluster_spec(manifest):
    return manifest["spec"]["cluster"]["spec"] if manifest["kind"] == "DaskJob" else manifest["spec"]


def pod_specs(manifest):
    cluster = cluster_spec(manifest)
    job = [manifest["spec"]["job"]["spec"]] if manifest["kind"] == "DaskJob" else []
    return [cluster["scheduler"]["spec"], cluster["worker"]["spec"], *job]


def pods():
    return [pod for manifest in of_kind("DaskCluster", "DaskJob") for pod in pod_specs(manifest)]


def containers():
    return [container for pod in pods() for container in pod["containers"]]


# The operator's own schemas, without the leniency of a server that drops what it does not know.


def strict(schema):
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tight = {key: strict(value) for key, value in schema.items()}
    if tight.get("x-kubernetes-int-or-string") is True:
        tight["type"] = ["integer", "string"]
    elif "properties" in tight and not tight.get("x-kubernetes-preserve-unknown-fields"):
        tight.setdefault("additionalProperties", False)
    return tight


@pytest.fixture(scope="module")
def schemas():
    """The operator's schema of each kind."""
    folder = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator/crds"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # there is near a megabyte of them
    found = {}
    for kind in ("DaskCluster", "DaskJob"):
        crd = yaml.load((folder / f"{kind.lower()}.yaml").read_text(), loader)
        schema = strict(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        schema["properties"] |= {"apiVersion": {"const": OPERATORS}, "kind": {"const": kind}, "metadata": {}}
        found[kind] = jsonschema.Draft202012Validator(schema)
    return found


@pytest.fixture(scope="module")
def builders(tmp_path_factory):
    """The operator's builders. Importing it writes a file into the configuration folder: not into the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        # What it imports is warned of by its own dependencies, which is not for us to judge.
        result = subprocess.run([sys.executable, "-W", "ignore", "-c", BUILD], input=MANIFEST_TEXT, capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    return yaml.safe_load(result.stdout)


MANIFEST_TEXT = b"\n---\n".join(path.read_bytes() for path in MANIFESTS)

BUILD = """
import json, sys, yaml
from dask_kubernetes.operator.controller import controller as op
from dask_kubernetes.operator.validation import validate_cluster_name

built = []
for manifest in yaml.safe_load_all(sys.stdin):
    if manifest["apiVersion"] != "kubernetes.dask.org/v1":
        continue
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    validate_cluster_name(name)
    if manifest["kind"] == "DaskJob":
        built.append(op.build_job_pod_spec(name, name, "default", spec["job"]["spec"], {}, {}))
        spec = spec["cluster"]["spec"]
    scheduler, worker = spec["scheduler"], spec["worker"]
    built.append(op.build_scheduler_deployment_spec(name, scheduler["spec"], {}, {}))
    built.append(op.build_scheduler_service_spec(name, scheduler["service"], {}, {}))
    built.append(op.build_worker_deployment_spec(name + "-default", "default", name, "0", worker["spec"], {}, {}))
json.dump(built, sys.stdout)
"""


def test_there_is_a_cluster_and_a_job():
    assert {found["kind"] for found in documents()} == {"DaskCluster", "DaskJob", "NetworkPolicy"}


@pytest.mark.parametrize("manifest", of_kind("DaskCluster", "DaskJob"), ids=lambda m: m["kind"])
def test_the_operator_knows_every_field(schemas, manifest):
    assert [error.message for error in schemas[manifest["kind"]].iter_errors(manifest)] == []


def test_the_schemas_bite(schemas):
    (job,) = of_kind("DaskJob")
    errors = schemas["DaskJob"].iter_errors
    counted, misspelt, bare = (copy.deepcopy(job) for _ in range(3))
    cluster_spec(counted)["worker"]["replicas"] = "two"
    misspelt["spec"]["job"]["spec"]["containerz"] = []
    del cluster_spec(bare)["scheduler"]["service"]
    assert [error.message for error in errors(counted)] == ["'two' is not of type 'integer'"]
    assert "'containerz' was unexpected" in next(errors(misspelt)).message
    assert "'service' is a required property" in next(errors(bare)).message


def test_kubernetes_accepts_what_the_operator_builds(builders):
    assert [built["kind"] for built in builders] == [
        "Deployment", "Service", "Deployment", "Pod", "Deployment", "Service", "Deployment",
    ]  # fmt: skip
    for built in builders:
        kubernetes_validate.validate(built, KUBERNETES, strict=True)


def test_kubernetes_accepts_the_rest():
    for manifest in of_kind("NetworkPolicy"):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


@pytest.mark.parametrize("field", ["image", "volumeMounts"])
def test_the_check_of_kubernetes_bites(builders, field):
    built = copy.deepcopy(builders[0])
    container = built["spec"]["template"]["spec"]["containers"][0]
    container[f"{field}z"] = container.pop(field)
    with pytest.raises(kubernetes_validate.ValidationError, match=f"'{field}z' was unexpected"):
        kubernetes_validate.validate(built, KUBERNETES, strict=True)


# What is ours to get right, and no schema says.


def test_selectors_find_the_pods_of_their_cluster():
    for manifest in of_kind("DaskCluster", "DaskJob"):
        selector = cluster_spec(manifest)["scheduler"]["service"]["selector"]
        assert selector == {"dask.org/cluster-name": manifest["metadata"]["name"], "dask.org/component": "scheduler"}
    names = {manifest["metadata"]["name"] for manifest in of_kind("DaskCluster", "DaskJob")}
    policies = of_kind("NetworkPolicy")
    assert {policy["spec"]["podSelector"]["matchLabels"]["dask.org/cluster-name"] for policy in policies} == names
    for policy in policies:
        own, operator = policy["spec"]["ingress"][0]["from"]
        assert own == {"podSelector": policy["spec"]["podSelector"]}
        assert operator["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "dask-kubernetes-operator"}


def test_both_manifests_describe_the_same_cluster():
    (cluster,), (job,) = of_kind("DaskCluster"), of_kind("DaskJob")
    expected = copy.deepcopy(cluster_spec(cluster))
    del expected["idleTimeout"]  # the operator deletes a job's cluster with the job
    expected["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = job["metadata"]["name"]
    assert cluster_spec(job) == expected


def test_every_container_is_locked_down():
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000
        assert pod["automountServiceAccountToken"] is False
        writable = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {"tmp": "/tmp"}
            assert set(writable) == {"tmp"}
            assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]


def test_no_secret_is_in_a_manifest():
    for container in containers():
        assert container["envFrom"] == [{"secretRef": {"name": "nfs-dask-storage", "optional": True}}]
        assert not [entry for entry in container.get("env", []) if re.search("KEY|SECRET|TOKEN", entry["name"])]


def test_a_worker_is_restarted_by_dask_before_kubernetes_kills_it():
    from nfs_dask.units import parse_bytes

    for manifest in of_kind("DaskCluster", "DaskJob"):
        (worker,) = cluster_spec(manifest)["worker"]["spec"]["containers"]
        limit = parse_bytes(worker["resources"]["limits"]["memory"] + "B")
        told = parse_bytes({entry["name"]: entry["value"] for entry in worker["env"]}["WORKER_MEMORY"])
        assert 256 << 20 <= limit - told <= 1 << 30


# Every command that is run exists, and takes the options it is given.


def command_of(container):
    """The words a container runs, with variables put in as Kubernetes does."""
    values = SET_BY_OPERATOR | {entry["name"]: entry["value"] for entry in container.get("env", [])}
    return [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in container["args"]]


def dockerfile_commands():
    """The commands of RUN that are of Dask or ours, and CMD."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "CMD":
            yield yaml.safe_load(rest)
        if instruction == "RUN":
            for part in re.split(r"&&", rest):
                words = shlex.split(re.sub(r">\s*\S+", "", part))
                if words[0] in ("dask", "nfs-dask"):
                    yield words


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


@pytest.mark.parametrize("container", containers(), ids=lambda c: c["name"])
def test_click_accepts_what_containers_run(container):
    assert parse(command_of(container))


def test_the_job_fits_what_it_says():
    (job,) = of_kind("DaskJob")
    params = parse(command_of(job["spec"]["job"]["spec"]["containers"][0]))
    assert params["store"] == "s3://bucket/mail.zarr"
    assert params["model"] == "s3://bucket/model"
    assert params["run"] == "s3://bucket/run"
    assert params["scheduler"] == ADDRESS
    assert params["workers"] == cluster_spec(job)["worker"]["replicas"]


def test_the_dockerfile_runs_commands_that_exist():
    commands = [*dockerfile_commands()]
    assert ["nfs-dask", "demo", "--documents", "2000"] in commands
    for words in commands:
        if "--help" not in words:
            parse(words)


@pytest.mark.parametrize(
    "words",
    [["nfs-dask", "fit", "a", "b", "--metod", "x"], ["dask", "worker", "--nthread", "two"], ["nfs-dask", "fti"]],
)
def test_the_check_of_commands_bites(words):
    with pytest.raises(click.UsageError):
        parse(words)


def test_the_image_is_that_of_the_manifests():
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER 1000:1000$", text, re.MULTILINE)
    assert "HOME=/tmp" in text and "NUMBA_CACHE_DIR=/tmp/numba" in text  # the one place that is writable
    assert {container["image"] for container in containers()} == {"nfs-dask:latest"}
    assert not [
        container["name"] for container in containers() if "command" in container
    ]  # it would skip the entry point
