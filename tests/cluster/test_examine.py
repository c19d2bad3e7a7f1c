"""The doctor, on real clusters: what it compares, what it finds, and whom it lets in."""

from __future__ import annotations

import os
import platform
import ssl
import stat
import subprocess
import sys
import time

import distributed
import numpy as np
import pytest
from dask.system import cpu_count

from nfs_dask.cli.options import ClusterOptions
from nfs_dask.cluster import examine as examining
from nfs_dask.cluster.examine import MAY_DIFFER, MUST_AGREE, Machine, Report, compare_versions, examine, judge_versions
from nfs_dask.cluster.finding import ask_workers, connect
from nfs_dask.cluster.tls import ROLES, make_certificates
from nfs_dask.errors import ClusterError, InputError
from nfs_dask.sources.matrix_source import MatrixSource


@pytest.fixture
def cluster(shared_workers):
    return shared_workers.whole()


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "data.zarr"
    folder.mkdir()
    (folder / "zarr.json").write_text("{}")
    return folder


def node(role, address="", **versions):
    return Machine(role, address, versions)


def test_equal_versions_make_no_difference():
    client = node("client", numpy="2.4.6", lz4=None)
    assert compare_versions(client, [node("scheduler", numpy="2.4.6", lz4=None)]) == []


def test_a_difference_names_package_versions_and_places():
    client = node("client", numpy="2.4.6")
    others = [node("scheduler", numpy="2.4.6"), node("worker", "tcp://a", numpy="2.0.0"), node("worker", "tcp://b")]
    (difference,) = compare_versions(client, others)
    assert difference.package == "numpy"
    assert difference.others == {"worker tcp://a": "2.0.0", "worker tcp://b": None}
    assert str(difference) == "numpy is 2.4.6 on the client, but 2.0.0 on worker tcp://a; missing on worker tcp://b"


def test_pythons_may_differ_in_their_last_number_only():
    def judged(version):
        report = Report([node("client", python="3.11.7"), node("worker", "tcp://a", python=version)])
        judge_versions(report)
        return len(report.problems), len(report.notes)

    assert judged("3.11.7") == (0, 0)
    assert judged("3.11.2") == (0, 1)
    assert judged("3.12.7") == (1, 0)


def test_a_difference_on_many_workers_is_short():
    others = [node("worker", f"tcp://{i}", numpy="1") for i in range(500)]
    (difference,) = compare_versions(node("client", numpy="2"), others)
    assert "and 497 more" in str(difference)
    assert len(str(difference)) < 150


def test_this_machine_alone():
    report = examine()
    assert report.healthy
    (client,) = report.nodes
    assert client.versions["dask"] == distributed.__version__
    assert client.versions["python"].startswith(platform.python_version())
    assert client.threads == cpu_count()
    assert client.memory_limit > 0
    assert report.encrypted is None


def test_a_machine_that_tells_its_processors_unlike_linux(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    if hasattr(os, "process_cpu_count"):  # since Python 3.13; without the above it is the other
        monkeypatch.setattr(os, "process_cpu_count", os.cpu_count)
    (client,) = examine().nodes
    assert 1 <= client.threads <= os.cpu_count()


def test_a_sound_cluster(cluster, store):
    with connect(cluster.scheduler_address) as client:
        report = examine(client, str(store))
    assert report.problems == []
    assert [n.role for n in report.nodes] == ["client", "scheduler", "worker", "worker"]
    assert {n.memory_limit for n in report.nodes if n.role == "worker"} == {2**31}
    assert report.nodes[2].versions == report.nodes[0].versions
    assert set(report.nodes[2].versions) == {*MUST_AGREE, *MAY_DIFFER}
    assert report.encrypted is False
    assert report.to_json()["healthy"] is True


@pytest.fixture
def told_of_five(monkeypatch):
    """Dask as many of its releases are: a client tells of five workers unless it is asked for more."""
    whole = distributed.Scheduler.identity

    def some(self, n_workers=5):
        info = whole(self, n_workers=-1)
        return info if n_workers == -1 else {**info, "workers": dict(list(info["workers"].items())[:n_workers])}

    monkeypatch.setattr(distributed.Scheduler, "identity", some)


def test_all_workers_are_looked_at(told_of_five, monkeypatch):
    """Here and before a command: what only the last of many workers lacks is found."""
    with distributed.LocalCluster(n_workers=7, threads_per_worker=1, processes=False, dashboard_address=None) as many:

        def odd(client, addresses, function, *args, **keywords):
            answers = ask_workers(client, addresses, function, *args, **keywords)
            last = max(answers)
            return answers | {last: {"packages": {**answers[last]["packages"], "numba": "0.0.1"}}}

        with connect(many.scheduler_address) as client:
            report = examine(client)
            assert [n.role for n in report.nodes] == ["client", "scheduler", *["worker"] * 7]
            assert report.healthy
        monkeypatch.setattr(examining, "ask_workers", odd)
        options = ClusterOptions(scheduler=many.scheduler_address, insecure=True)
        refused = pytest.raises(ClusterError, match=r"numba is .* on the client, but 0.0.1 on worker")
        with refused, options.engine(MatrixSource(np.eye(2))):
            pass


def test_a_store_that_nobody_reaches(cluster, tmp_path):
    with connect(cluster.scheduler_address) as client:
        report = examine(client, str(tmp_path / "nowhere.zarr"))
    (problem,) = report.problems
    assert "nowhere.zarr is not reached by client, worker" in problem


def test_a_folder_that_is_no_store(tmp_path):
    (tmp_path / "file").touch()
    (problem,) = examine(store=str(tmp_path)).problems
    assert "not a Zarr group" in problem


def test_a_single_file_is_a_store_too(tmp_path):
    (tmp_path / "cells.h5ad").write_bytes(b"12345")
    assert examine(store=str(tmp_path / "cells.h5ad")).healthy


@pytest.fixture
def odd_worker(cluster, tmp_path):
    """A worker that says it has another numba and another tornado than everybody else."""
    for package in ("numba", "tornado"):
        folder = tmp_path / "site" / f"{package}-0.0.1.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--nthreads", "1"]
    options = ["--no-nanny", "--no-dashboard", "--name", "odd", "--memory-limit", "0"]
    search = os.pathsep.join([str(tmp_path / "site"), os.getcwd()])
    environment = os.environ | {"PYTHONPATH": search}
    with subprocess.Popen([*command, *options], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: len(cluster.scheduler.workers) == 3)
            (address,) = [w.address for w in cluster.scheduler.workers.values() if w.name == "odd"]
            yield address
        finally:
            process.terminate()
    wait_for(lambda: len(cluster.scheduler.workers) == 2)


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.filterwarnings("ignore:Mismatched versions found")
def test_a_worker_with_other_packages(cluster, odd_worker):
    with connect(cluster.scheduler_address) as client:
        report = examine(client)
    (problem,) = report.problems
    assert problem.startswith("numba is ")
    assert f"0.0.1 on worker {odd_worker}; install the same version everywhere" in problem
    assert any(note.startswith("tornado is ") for note in report.notes), "harmless differences are notes"
    assert any("no memory limit" in note for note in report.notes)


def test_nobody_answers():
    address = "tcp://127.0.0.1:9"
    with pytest.raises(ClusterError, match=f"{address} cannot be reached"), connect(address, seconds=0.5):
        pass


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder / "ours")
    return folder


def test_keys_are_private_and_nothing_is_replaced(certificates):
    ours = certificates / "ours"
    assert {p.name for p in ours.iterdir()} == {
        *("ca.pem", "ca-key.pem"),
        *(f"{role}{end}.pem" for role in ROLES for end in ("", "-key")),
    }
    for path in ours.glob("*-key.pem"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = {p: p.read_bytes() for p in ours.iterdir()}
    with pytest.raises(InputError, match="holds ca.pem"):
        make_certificates(ours)
    assert before == {p: p.read_bytes() for p in ours.iterdir()}


def test_certificates_are_good_for_the_hosts_named(tmp_path):
    from cryptography import x509

    make_certificates(tmp_path, ["scheduler.example.org", "10.0.0.7"])
    certificate = x509.load_pem_x509_certificate((tmp_path / "scheduler.pem").read_bytes())
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["scheduler.example.org"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    context.load_cert_chain(tmp_path / "client.pem", tmp_path / "client-key.pem")
