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
import uuid
from pathlib import Path

import pytest

from tests.helpers.hub import running_hub, signed_in, skip_without_hub, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ANN, BEN = "games", "backup"
MAY_MAKE = "NFS_DASK_MAKE_ACCOUNTS"

# Jupyter writes to homes, which such accounts do not have.
HOMES = """
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


@pytest.fixture
def folder():
    """A folder that all may enter."""
    skip_without_hub()
    if os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")
    if not usable_by_others():
        pytest.skip(f"{sys.executable} and its packages are not readable by other users")
    folder = Path(tempfile.mkdtemp(prefix="nfs-hub-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def hub(folder):
    for name in (ANN, BEN):
        home = folder / "homes" / name
        home.mkdir(parents=True)
        shutil.chown(home, name)
    settings = {"hub": {"users": [ANN, BEN]}, "limits": {"worker_memory": [0.5, 1]}}
    with running_hub(folder, settings, sign_in="", hub=HOMES.format(homes=folder / "homes"), gateway=BACKEND) as hub:
        yield hub


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


# Passwords


@pytest.fixture
def accounts():
    """Two accounts with passwords and homes, which are made for the test, and gone after it."""
    if os.environ.get(MAY_MAKE) != "yes":
        pytest.skip(f"makes two accounts of this machine for a while, where {MAY_MAKE}=yes says that it may")
    made = {f"nfs-{uuid.uuid4().hex[:8]}": uuid.uuid4().hex for _ in range(2)}
    try:
        for name, password in made.items():
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
            subprocess.run(["chpasswd"], input=f"{name}:{password}", text=True, check=True)
        yield made
    finally:
        for name in made:
            subprocess.run(["userdel", "--remove", name], capture_output=True, check=False)


def test_accounts_sign_in_with_their_own_passwords_as_shipped(folder, accounts):
    """By PAM; and the session is that of the account, in its home."""
    (ann, password), (ben, other) = accounts.items()
    settings = {"hub": {"users": [ann]}}
    with running_hub(folder, settings, sign_in="", gateway=BACKEND) as hub:
        assert [signed_in(hub, ann, word) for word in ("guessed", other, password)] == [403, 403, 302]
        assert signed_in(hub, ben, other) == 403, "who is not listed"
        with hub.session(ann) as session:
            who = session.value("[__import__('os').getuid(), __import__('os').path.expanduser('~')]")
        assert who == [pwd.getpwnam(ann).pw_uid, pwd.getpwnam(ann).pw_dir]
        subprocess.run(["usermod", "--expiredate", "1", ann], check=True)
        assert signed_in(hub, ann, password) == 403, "who is not to come in any more"
        assert password not in hub.log and other not in hub.log
