"""Sessions and clusters under the accounts of their users, as the shipped configuration has them where root starts it.

Accounts are two that every Linux has. They have to reach the interpreter and the packages: one in the home of root
does not do.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers.hub import running_hub, skip_without_hub, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ANN, BEN = "games", "backup"

# Jupyter writes to homes, which such accounts do not have.
AS_SHIPPED = """
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.args = []
c.Spawner.environment |= {{
    name: lambda spawner, name=name: f"{homes}/{{spawner.user.name}}/{{name}}"
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "NUMBA_CACHE_DIR")
}}
c.Spawner.notebook_dir = "{homes}/{{username}}"
"""
BACKEND = 'c.DaskGateway.backend_class = "user_clusters.UserProcesses"'


def usable_by_others():
    command = [sys.executable, "-c", "import nfs_dask"]
    try:
        return not subprocess.run(
            command, user=ANN, group=ANN, extra_groups=[], cwd="/", capture_output=True
        ).returncode
    except (PermissionError, KeyError):
        return False


@pytest.fixture(scope="module")
def hub():
    skip_without_hub()
    if os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")
    if not usable_by_others():
        pytest.skip(f"{sys.executable} and its packages are not readable by other users")
    folder = Path(tempfile.mkdtemp(prefix="nfs-hub-"))
    folder.chmod(0o755)
    for name in (ANN, BEN):
        home = folder / "homes" / name
        home.mkdir(parents=True)
        shutil.chown(home, name)
    settings = {"hub": {"users": [ANN, BEN]}, "limits": {"worker_memory": [0.5, 1]}}
    with running_hub(folder, settings, hub=AS_SHIPPED.format(homes=folder / "homes"), gateway=BACKEND) as hub:
        yield hub
    shutil.rmtree(folder)


def test_a_cluster_is_its_users_and_shut_to_others(hub):
    uid = pwd.getpwnam(ANN).pw_uid
    root = os.stat("/").st_uid
    with hub.session(ANN) as ann, hub.session(BEN) as ben:
        ann.run("import os; from dask_gateway import Gateway; cluster = Gateway().new_cluster(); cluster.scale(1)")
        ann.run("client = cluster.get_client(); client.wait_for_workers(1)")
        users = "[os.getuid(), *client.run(os.getuid).values(), client.run_on_scheduler(os.getuid)]"
        assert ann.value(users) == [uid] * 3
        (folder,) = (hub.folder / "state" / "clusters").iterdir()
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (uid, 0o700)
        assert os.stat("/").st_uid == root
        for shut in (folder / ".certs" / "dask.pem", hub.folder / "state" / "hub" / "cookie_secret"):
            assert shut.exists()
            assert "PermissionError" in ben.run(f"try: open('{shut}')\nexcept OSError as error: print(repr(error))")
        ann.run("import numpy as np, nfs_dask as nfs; X = np.random.default_rng(0).poisson(1, (5000, 50))")
        ann.run(
            "y = X[:, 7] + X[:, 9] > 2; there = nfs.SparseMultinomialNB(k=5, engine=nfs.DaskEngine(client)).fit(X, y)"
        )
        assert ann.value("int((there.coef_ != nfs.SparseMultinomialNB(k=5).fit(X, y).coef_).sum())") == 0
        logs = hub.folder / "state" / "logs" / folder.name
        assert len([*logs.glob("worker-*.log")]) == 1 and (logs / "scheduler.log").stat().st_size > 0
        assert "PermissionError" in ann.run(f"try: os.listdir('{logs}')\nexcept OSError as error: print(repr(error))")
        ann.run("client.close(); cluster.shutdown()")
        wait_until(lambda: not folder.exists())
        assert logs.exists()
