"""The image: its commands, its versions, and what charts make of it."""

from __future__ import annotations

import re
import shlex
import ssl
import tomllib
from types import SimpleNamespace

import click
import dask
import pytest
import yaml
from distributed import Security

from nfs_dask.cluster.tls import make_certificates
from nfs_dask.units import MiB, parse_bytes
from tests.helpers import built_image
from tests.helpers.deployed import DEPLOY, containers, parse


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
    assert {container["image"] for container in containers()} == {"nfs-dask:0.1.0"}
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
    of_image = re.search(r"^ARG EXTRAS=(.+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1].split(",")
    asked = [*project["dependencies"], *(one for name in of_image for one in extras[name]), "hatchling"]
    for one in asked:
        name = re.match(r"[\w-]+", one)[0]
        assert name in locked, f"{name} is not in deploy/constraints.txt; write it anew with deploy/lock.sh"


# Values for charts, which are not here: what commands they make is.


def test_values_of_charts_run_commands_that_exist():
    values = yaml.safe_load((DEPLOY / "helm/dask-values.yaml").read_text())
    scheduler, worker = values["scheduler"], values["worker"]
    assert parse(["dask", "scheduler", "--port=8786", "--dashboard-address=:8787", *scheduler["extraArgs"]])
    given = ["--nthreads", str(worker["threads_per_worker"]), "--memory-limit", worker["resources"]["limits"]["memory"]]
    params = parse(["dask", "worker", worker["custom_scheduler_url"], *given, *worker["extraArgs"]])
    assert parse_bytes(params["memory_limit"]) == 3584 * MiB  # the last one counts
    for part, role in (("scheduler", "SCHEDULER"), ("worker", "WORKER")):
        secret = [entry for entry in values[part]["env"] if "valueFrom" in entry]
        keys = {entry["name"]: entry["valueFrom"]["secretKeyRef"]["key"] for entry in secret}
        assert keys["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] == "ca.pem"
        assert keys[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] == f"{part}-key.pem"


def test_dask_takes_certificates_as_variables(tmp_path):
    """As the chart gives them, which mounts nothing into the scheduler."""
    make_certificates(tmp_path)
    files = {"ca-file": "ca.pem", "scheduler.cert": "scheduler.pem", "scheduler.key": "scheduler-key.pem"}
    tls = {f"distributed.comm.tls.{name}": (tmp_path / file).read_text() for name, file in files.items()}
    with dask.config.set({**tls, "distributed.comm.require-encryption": True}):
        security = Security()
    assert isinstance(security.get_listen_args("scheduler")["ssl_context"], ssl.SSLContext)


def test_options_of_the_gateway_are_code():
    values = yaml.safe_load((DEPLOY / "helm/daskhub-values.yaml").read_text())
    code = values["dask-gateway"]["gateway"]["extraConfig"]["nfs-dask"]
    made = SimpleNamespace(ClusterConfig=SimpleNamespace())
    exec(code, {"c": made})
    assert made.ClusterConfig.scheduler_cmd == ["dask", "scheduler"]
    assert made.ClusterConfig.worker_cmd == ["dask", "worker"]
    assert 0 < made.ClusterConfig.idle_timeout <= 3600


# The image itself, on a base of Debian; test_image_runs.py runs it.


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_image_is_no_larger_than_the_page_says(tmp_path):
    built_image.built()
    page = (DEPLOY / "README.md").read_text()
    whole, packed = (int(found) for found in re.search(r"(\d+) MB, and (\d+) MB compressed", page).groups())
    ours = int(built_image.in_image("du", "-s", "--bytes", "/opt/nfs-dask").split()[0])
    base = built_image.compressed_layers(built_image.BASE, tmp_path)
    layers = built_image.compressed_layers(built_image.NAME, tmp_path)
    print(f"/opt/nfs-dask: {ours / 1e6:.1f} MB; layers of ours: {sum(layers[len(base) :]) / 1e6:.1f} MB compressed")
    assert ours <= whole * 1e6
    assert sum(layers[len(base) :]) <= packed * 1e6
