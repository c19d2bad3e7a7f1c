"""What is in deploy/kubernetes is accepted by the operator's schemas, by those of Kubernetes, and by what it runs."""

from __future__ import annotations

import copy
import importlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import click
import jsonschema
import kubernetes_validate
import pytest
import yaml

from nfs_dask.cli.main import cli
from nfs_dask.cluster.manifests import FitJob, WorkerSize
from nfs_dask.units import GiB, MiB, parse_bytes
from tests.helpers.kustomize import kustomized

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAYS = sorted(path.parent for path in DEPLOY.glob("kubernetes/overlays/*/kustomization.yaml"))
KUBERNETES = ("1.33", kubernetes_validate.latest_version())
OPERATORS = "kubernetes.dask.org/v1"

ADDRESS = "tls://nfs-dask-scheduler:8786"
FIT = FitJob(
    "s3://bucket/mail.zarr", "s3://bucket/model", "s3://bucket/run", ["--method", "multinomial", "-k", "1000"],
    workers=4, size=WorkerSize(2, 3584 * MiB), client_nbytes=1280 * MiB,
)  # fmt: skip


def insecure():
    """The small overlay with the component that takes TLS away, as a folder of a user."""
    return {
        "resources": ["../../deploy/kubernetes/base"],
        "components": ["../../deploy/kubernetes/components/insecure", "../../deploy/kubernetes/components/job"],
    }


@pytest.fixture(scope="module")
def insecure_overlay(tmp_path_factory):
    root = tmp_path_factory.mktemp("overlays")
    (root / "deploy").symlink_to(DEPLOY)
    folder = root / "mine" / "insecure"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(insecure()))
    return folder


MANIFESTS = {path.name: kustomized(path) for path in OVERLAYS} | {"plan": FIT.manifests()}


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
    for kind in ("DaskCluster", "DaskJob", "DaskAutoscaler"):
        crd = yaml.load((folder / f"{kind.lower()}.yaml").read_text(), loader)
        schema = strict(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        schema["properties"] |= {"apiVersion": {"const": OPERATORS}, "kind": {"const": kind}, "metadata": {}}
        found[kind] = jsonschema.Draft202012Validator(schema)
    return found


@pytest.fixture(scope="module")
def builders(tmp_path_factory):
    """The operator's builders. Importing it writes a file into the configuration folder: not into the user's."""
    text = yaml.safe_dump_all(documents()).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        # What it imports is warned of by its own dependencies, which is not for us to judge.
        result = subprocess.run([sys.executable, "-W", "ignore", "-c", BUILD], input=text, capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    return yaml.safe_load(result.stdout)


BUILD = """
import json, sys, yaml
from dask_kubernetes.operator.controller import controller as op
from dask_kubernetes.operator.validation import validate_cluster_name

built = []
for manifest in yaml.safe_load_all(sys.stdin):
    if manifest["kind"] not in ("DaskCluster", "DaskJob"):
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


def test_overlays_are_what_they_are_called():
    kinds = {name: sorted(found["kind"] for found in manifests) for name, manifests in MANIFESTS.items()}
    assert kinds == {
        "small": ["DaskJob", "NetworkPolicy"],
        "large": ["DaskJob", "NetworkPolicy"],
        "plan": ["DaskJob", "NetworkPolicy"],
        "spot": ["DaskCluster", "Job", "NetworkPolicy"],
        "cluster": ["DaskAutoscaler", "DaskCluster", "NetworkPolicy"],
    }


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: path.name)
def test_kustomize_says_the_same(folder):
    assert by_kind(kustomized(folder)) == by_kind(told_by_kustomize(folder))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_takes_tls_away_in_the_same_way(insecure_overlay):
    assert by_kind(kustomized(insecure_overlay)) == by_kind(told_by_kustomize(insecure_overlay.resolve()))


def told_by_kustomize(folder):
    result = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    return [*yaml.safe_load_all(result.stdout)]


def by_kind(manifests):
    return {found["kind"]: found for found in manifests}


def test_what_plan_prints_is_the_small_overlay_with_other_numbers():
    """Both are made of the same files: with the numbers of the overlay they are equal."""
    assert by_kind(FIT.manifests()) == by_kind(MANIFESTS["small"])


@pytest.mark.parametrize("manifest", of_kind("DaskCluster", "DaskJob", "DaskAutoscaler"), ids=lambda m: m["kind"])
def test_the_operator_knows_every_field(schemas, manifest):
    assert [error.message for error in schemas[manifest["kind"]].iter_errors(manifest)] == []


def test_the_schemas_bite(schemas):
    job = of_kind("DaskJob")[0]
    errors = schemas["DaskJob"].iter_errors
    counted, misspelt, bare = (copy.deepcopy(job) for _ in range(3))
    cluster_spec(counted)["worker"]["replicas"] = "two"
    misspelt["spec"]["job"]["spec"]["containerz"] = []
    del cluster_spec(bare)["scheduler"]["service"]
    assert [error.message for error in errors(counted)] == ["'two' is not of type 'integer'"]
    assert "'containerz' was unexpected" in next(errors(misspelt)).message
    assert "'service' is a required property" in next(errors(bare)).message


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_accepts_what_the_operator_builds(builders, version):
    assert {built["kind"] for built in builders} == {"Deployment", "Service", "Pod"}
    assert len(builders) == 3 * 5 + 3
    for built in builders:
        kubernetes_validate.validate(built, version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_accepts_the_rest(version):
    access = [*yaml.safe_load_all((DEPLOY / "kubernetes/access/rbac.yaml").read_text())]
    assert {found["kind"] for found in access} == {"Role", "RoleBinding", "ServiceAccount"}
    for manifest in [*of_kind("NetworkPolicy", "Job"), *access]:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("field", ["image", "volumeMounts"])
def test_the_check_of_kubernetes_bites(builders, field):
    built = copy.deepcopy(builders[0])
    container = built["spec"]["template"]["spec"]["containers"][0]
    container[f"{field}z"] = container.pop(field)
    with pytest.raises(kubernetes_validate.ValidationError, match=f"'{field}z' was unexpected"):
        kubernetes_validate.validate(built, KUBERNETES[0], strict=True)


# What is ours to get right, and no schema says.


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
        assert operator["from"][0]["podSelector"]["matchLabels"] == {
            "app.kubernetes.io/name": "dask-kubernetes-operator"
        }
        assert operator["ports"] == [
            {"protocol": "TCP", "port": 8787}
        ]  # of health, metrics and the operator's questions
        worker = cluster_spec(cluster)["worker"]["spec"]["containers"][0]
        assert values_of(worker)["DASK_SCHEDULER_ADDRESS"] == f"tls://{name}-scheduler:8786"


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


def test_without_tls_nothing_of_it_is_left_and_the_client_is_told(insecure_overlay, schemas):
    (job,) = [found for found in kustomized(insecure_overlay) if found["kind"] == "DaskJob"]
    assert [error.message for error in schemas["DaskJob"].iter_errors(job)] == []
    assert "tls" not in yaml.safe_dump(job).lower()
    assert job["spec"]["job"]["spec"]["containers"][0]["args"][-1] == "--insecure"
    assert yaml.safe_dump(job).count("tcp://nfs-dask-scheduler:8786") == 2
    for container in [job["spec"]["job"]["spec"]["containers"][0], *cluster_containers(job)]:
        assert parse(command_of(container))


def cluster_containers(manifest):
    return [cluster_spec(manifest)[part]["spec"]["containers"][0] for part in ("scheduler", "worker")]


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


# Every command that is run exists, and takes the options it is given.


def command_of(container):
    """The words a container runs, with variables put in as Kubernetes does."""
    values = {"DASK_WORKER_NAME": "nfs-dask-default-worker-0"} | values_of(container)
    words = [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in container["args"]]
    if words[0] == "begin-or-resume":  # deploy/begin-or-resume.sh
        return [*words[2:], "--run", words[1]]
    return words


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
    with_command = [container["name"] for container in containers() if "command" in container]
    assert not with_command  # it would skip the entry point
    ignored = (DEPLOY.parent / ".dockerignore").read_text().split()
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", text, re.MULTILINE)
    assert all(f"!{name}" in ignored for line in copied for name in line.split())


def test_the_image_has_the_versions_of_the_lock():
    text = (DEPLOY / "constraints.txt").read_text()
    locked = set(re.findall(r"^([\w-]+)==[\w.]+(?: ;.*)?$", text, re.MULTILINE))
    assert len(locked) > 40 and not re.search(r"[<>~]=|@", re.sub(" ;.*", "", text))
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["s3"], *extras["anndata"], *extras["text"], "hatchling"]
    for one in asked:
        name = re.match(r"[\w-]+", one)[0]
        assert name in locked, f"{name} is not in deploy/constraints.txt; write it anew with deploy/lock.sh"
