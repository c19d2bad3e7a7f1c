"""What is in deploy/kubernetes is accepted by the schemas of the operator and of Kubernetes."""

from __future__ import annotations

import copy
import subprocess
import sys
from importlib.resources import files

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.helpers.deployed import DEPLOY, cluster_spec, documents, of_kind

KUBERNETES = ("1.33", kubernetes_validate.latest_version())
OPERATORS = "kubernetes.dask.org/v1"


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
    for manifest in [*of_kind("NetworkPolicy", "PodDisruptionBudget", "Job"), *access]:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("field", ["image", "volumeMounts"])
def test_the_check_of_kubernetes_bites(builders, field):
    built = copy.deepcopy(builders[0])
    container = built["spec"]["template"]["spec"]["containers"][0]
    container[f"{field}z"] = container.pop(field)
    with pytest.raises(kubernetes_validate.ValidationError, match=f"'{field}z' was unexpected"):
        kubernetes_validate.validate(built, KUBERNETES[0], strict=True)
