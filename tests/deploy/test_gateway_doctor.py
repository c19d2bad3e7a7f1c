"""The doctor on a gateway's cluster: of the session's environment, of another one, and of one set to other things."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest
from distributed.system import MEMORY_LIMIT

from nfs_dask.units import format_bytes
from tests.helpers.hub import running_hub, skip_without_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GiB = 2**30


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """An environment with all packages of this one, and a numpy of its own that is older."""
    folder = tmp_path_factory.mktemp("environments") / "other"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    older = [f"numpy<{np.__version__}", "--no-deps", "--quiet"]
    if uv := shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent):
        install = [uv, "pip", "install", "--python", str(python), *older]
    else:
        install = [sys.executable, "-m", "pip", "install", "--target", str(site), *older]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"no older numpy can be installed here: {done.stderr.strip()[-200:]}")
    (site / "tested.pth").write_text(f"{sysconfig.get_path('purelib')}\n{Path(__file__).parents[2]}\n")
    command = folder / "bin" / "dask"
    command.write_text(f"#!{python}\nfrom dask.__main__ import main\nif __name__ == '__main__':\n    main()\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def session(tmp_path_factory, other):
    skip_without_hub()
    settings = {
        "hub": {"users": ["alice"]},
        "limits": {"worker_memory": [0.5, 4096], "memory": 8192},
        "environments": {"tested": sys.prefix, "other": str(other)},
    }
    unset = 'from user_clusters import WORKERS_HAVE; WORKERS_HAVE["NUMBA_CPU_NAME"] = "generic"'
    with running_hub(tmp_path_factory.mktemp("hub"), settings, gateway=unset) as hub, hub.session("alice") as alice:
        alice.run("import subprocess; from dask_gateway import Gateway")
        yield alice


def doctor(session, *arguments):
    """Exit code, answer and messages of the doctor, as a user calls it from the session."""
    command = json.dumps(["nfs-dask", "doctor", *arguments, "--json"])
    session.run(f"done = subprocess.run({command}, capture_output=True, text=True)")
    code, answer, said = session.value("[done.returncode, done.stdout, done.stderr]")
    return code, json.loads(answer) if answer else None, said


def start(session, **options):
    session.run(f"cluster = Gateway().new_cluster(**{options!r}); cluster.scale(1)")
    session.run("cluster.get_client().wait_for_workers(1)")


def test_without_a_cluster_it_says_how_to_have_one(session):
    code, _, said = doctor(session, "--scheduler", "gateway")
    assert code == 4 and "you have no cluster at https://127.0.0.1:" in said and "new_cluster()" in said
    code, _, said = doctor(session, "--scheduler", "gateway://0123abcd")
    assert code == 4 and "Cluster 0123abcd not found" in said and "that the cluster is yours" in said


def test_a_cluster_of_the_environment_of_the_session_is_sound(session):
    start(session)
    code, found, _ = doctor(session, "--scheduler", "gateway")
    session.run("cluster.shutdown()")
    assert code == 0 and found["healthy"] and found["encrypted"] and found["gateway"]
    assert [node["role"] for node in found["nodes"]] == ["client", "scheduler", "worker"]
    assert found["nodes"][2]["memory_limit"] == 4 * GiB
    assert not [note for note in found["notes"] if "memory that is free" in note or "linear algebra" in note]


def test_of_several_clusters_one_has_to_be_named(session):
    start(session)
    session.run("first = cluster.name; second = Gateway().new_cluster()")
    code, _, said = doctor(session, "--scheduler", "gateway")
    assert code == 4 and "you have 2 clusters" in said and "name one: --scheduler gateway://" in said
    code, _, _ = doctor(session, "--scheduler", f"gateway://{session.value('first')}")
    session.run("second.shutdown(); cluster.shutdown()")
    assert code == 0


def test_an_environment_with_another_numpy_is_found(session):
    start(session, environment="other")
    code, found, said = doctor(session, "--scheduler", "gateway")
    session.run("cluster.shutdown()")
    assert code == 4
    versions = [node["versions"]["numpy"] for node in found["nodes"]]
    assert versions[0] == np.__version__ and versions[1] == versions[2] != versions[0]
    assert f"numpy is {np.__version__} on the client, but {versions[1]} on scheduler, worker tls://" in said
    assert "make a cluster of the environment or image of this session" in said
    assert versions_that_differ(found) == ["numpy"]


def versions_that_differ(found):
    client, *others = (node["versions"] for node in found["nodes"])
    return [package for package in client if {one[package] for one in others} != {client[package]}]


def test_what_workers_are_set_to_and_what_it_costs_is_told(session):
    start(session, worker_memory=0.75 * MEMORY_LIMIT / GiB)
    session.run("cluster.scale(2); cluster.get_client().wait_for_workers(2)")
    code, found, _ = doctor(session, "--scheduler", "gateway")
    session.run("cluster.shutdown()")
    assert code == 0
    (compiled,) = [note for note in found["notes"] if note.startswith("numba compiles for")]
    assert "but for generic" in compiled and "set NUMBA_CPU_NAME=generic" in compiled
    (crowded,) = [note for note in found["notes"] if "together" in note]
    assert f"may take {format_bytes(1.5 * MEMORY_LIMIT)} together, and it has {format_bytes(MEMORY_LIMIT)}" in crowded


def test_who_is_not_known_to_the_gateway_is_told_so(session):
    session.run("import os; token = os.environ['JUPYTERHUB_API_TOKEN']; os.environ['JUPYTERHUB_API_TOKEN'] = 'wrong'")
    code, _, said = doctor(session, "--scheduler", "gateway")
    session.run("os.environ['JUPYTERHUB_API_TOKEN'] = token")
    assert code == 4 and "the gateway answered 401: it does not know you" in said
