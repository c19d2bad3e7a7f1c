"""A real JupyterHub with its gateway, from the shipped configuration, and what its users do in kernels there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from nfs_dask.cluster.tls import make_certificates
from tests.helpers.fault_hosts import LOOPBACK, Host

DEPLOY = Path(__file__).parents[2] / "deploy" / "jupyterhub"
PASSWORD = "only-on-loopback"
NEEDS = ("jupyterhub", "jupyterlab", "jupyter_server_proxy", "dask_gateway_server.backends.local", "bokeh")

HUB = """
load_subconfig({shipped!r})
import os
c, here = get_config(), {here!r}
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.JupyterHub.services.append({{"name": "tests", "api_token": os.environ["TESTS_TOKEN"]}})
scopes = ["admin:users", "admin:servers", "admin:groups", "tokens"]
c.JupyterHub.load_roles.append({{"name": "tests", "services": ["tests"], "scopes": scopes}})
{sign_in}
{more}
"""
# Whoever tests has no accounts: everybody signs in with one password, and all run as the one who tests.
ONE_PASSWORD = f"""
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {PASSWORD!r}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = here + "/home-{{username}}"
c.Spawner.args = ["--allow-root"]
"""
GATEWAY = """
load_subconfig({shipped!r})
c = get_config()
from dask_gateway_server.backends.local import UnsafeLocalBackend
from user_clusters import NoMoreClustersThanAllowed
class OneAccount(NoMoreClustersThanAllowed, UnsafeLocalBackend): pass
c.DaskGateway.backend_class = OneAccount
{more}
"""


def skip_without_hub() -> None:
    """Skip where a component is not installed, and say which."""
    for module in NEEDS:
        pytest.importorskip(module, reason=f"{module} is not installed; see deploy/jupyterhub/requirements.txt")
    if shutil.which("configurable-http-proxy") is None:
        pytest.skip("configurable-http-proxy is not on the path; npm install --global configurable-http-proxy")


def free_ports(n: int) -> list[int]:
    """Ports of this machine that nobody has, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_until(done: Callable[[], Any], seconds: float = 180) -> Any:
    """The first answer that is true; an error where there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := done()):
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.2)
    return answer


@dataclass
class Hub:
    """A running hub, as a program sees it that may do everything with users."""

    url: str
    folder: Path
    token: str
    process: subprocess.Popen[bytes]
    schedulers: int  # port of the gateway's encrypted side

    @property
    def authority(self) -> str:
        return str(self.folder / "certificates" / "ca.pem")

    @property
    def log(self) -> str:
        return (self.folder / "hub.log").read_text()

    def ask(self, method: str, path: str, token: str | None = "", scheme: str = "token", **more: Any) -> Any:
        """The response to a request; the token is ours if none is given, and ``None`` is no token at all."""
        import requests

        headers = {} if token is None else {"Authorization": f"{scheme} {token or self.token}"}
        return requests.request(
            method, self.url + path, headers=headers, verify=self.authority, timeout=60, allow_redirects=False, **more
        )

    def gateway(self, method: str, path: str, token: str | None, **more: Any) -> Any:
        """The same of the gateway's interface, as its users ask it."""
        return self.ask(method, f"/services/dask-gateway/api/v1{path}", token, "jupyterhub", **more)

    def token_of(self, user: str) -> str:
        answer = self.ask("POST", f"/hub/api/users/{user}/tokens", json={"expires_in": 3600})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    @contextmanager
    def session(self, user: str) -> Iterator[Session]:
        """A server of a user with a kernel, both ended at the end."""
        answer = self.ask("POST", f"/hub/api/users/{user}/server")
        assert answer.status_code in (201, 202), answer.text
        try:
            wait_until(lambda: self.ask("GET", f"/hub/api/users/{user}").json()["servers"].get("", {}).get("ready"))
            yield Session(self, user, self.token_of(user))
        finally:
            self.ask("DELETE", f"/hub/api/users/{user}/server")


class Session:
    """A kernel on a user's server, spoken to as browsers do."""

    def __init__(self, hub: Hub, user: str, token: str) -> None:
        self.hub, self.user, self.token = hub, user, token
        wanted = {"name": "work", "path": "work", "type": "console", "kernel": {"name": "python3"}}
        answer = self.ask("POST", "/api/sessions", json=wanted)
        assert answer.status_code == 201, answer.text
        self.kernel = answer.json()["kernel"]["id"]

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """A request to the user's server."""
        return self.hub.ask(method, f"/user/{self.user}{path}", self.token, **more)

    def run(self, code: str, seconds: float = 240) -> str:
        """What a cell prints; an error where it fails."""
        import websocket

        where = self.hub.url.replace("https://", "wss://")
        socket = websocket.create_connection(
            f"{where}/user/{self.user}/api/kernels/{self.kernel}/channels",
            header=[f"Authorization: token {self.token}"],
            sslopt={"ca_certs": self.hub.authority, "cert_reqs": ssl.CERT_REQUIRED},
            timeout=seconds,
        )
        try:
            return _carried_out(socket, code, time.monotonic() + seconds)
        finally:
            socket.close()

    def value(self, code: str) -> Any:
        """The value of an expression of plain values, whatever libraries say meanwhile of objects that are deleted."""
        mark = uuid.uuid4().hex
        said = self.run(f"import json; print({mark!r} + json.dumps({code}))")
        return json.loads(said.partition(mark)[2].partition("\n")[0])


def _carried_out(socket: Any, code: str, deadline: float) -> str:
    message = uuid.uuid4().hex
    header = {"msg_id": message, "msg_type": "execute_request", "username": "", "session": message, "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
    request = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    socket.send(json.dumps(request))
    said, failed = [], None
    while time.monotonic() < deadline:
        answer = json.loads(socket.recv())
        if answer["parent_header"].get("msg_id") != message:
            continue
        kind, content = answer["msg_type"], answer["content"]
        if kind == "stream":
            said.append(content["text"])
        elif kind in ("execute_result", "display_data"):
            said.append(content["data"].get("text/plain", ""))
        elif kind == "error":
            failed = "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            assert failed is None, f"{''.join(said)}\n{failed}"
            return "".join(said)
    raise AssertionError(f"the cell has not ended in time: {code}")


@contextmanager
def running_hub(
    folder: Path,
    settings: Mapping[str, Mapping[str, Any]],
    *,
    sign_in: str = ONE_PASSWORD,
    hub: str = "",
    gateway: str = "",
    host: Host = LOOPBACK,
) -> Iterator[Hub]:
    """The shipped configuration with settings of ours, on free ports, with certificates made for it."""
    public, hub_port, proxy_port, http, schedulers = free_ports(5)
    certify(folder / "certificates", host.address)
    ours = {
        "hub": {
            "address": f"{host.address}:{public}",
            "folder": str(folder / "state"),
            "certificates": str(folder / "certificates"),
        },
        "gateway": {
            "http": f"127.0.0.1:{http}",
            "schedulers": f"{host.address}:{schedulers}",
            "config": str(folder / "gateway.py"),
        },
        "environments": {"tested": sys.prefix},
    }
    write_settings(
        folder / "settings.toml", {name: ours.get(name, {}) | dict(settings.get(name, {})) for name in KINDS}
    )
    inner = {"hub_port": hub_port, "proxy_port": proxy_port, "sign_in": sign_in, "more": hub}
    shipped = str(DEPLOY / "jupyterhub_config.py")
    (folder / "hub.py").write_text(HUB.format(shipped=shipped, here=str(folder), **inner))
    (folder / "gateway.py").write_text(GATEWAY.format(shipped=str(DEPLOY / "dask_gateway_config.py"), more=gateway))
    token = uuid.uuid4().hex
    environment = os.environ | {"TESTS_TOKEN": token, "NFS_HUB_SETTINGS": str(folder / "settings.toml")}
    environment["PATH"] = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
    with (folder / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [*host.within, sys.executable, "-m", "jupyterhub", "-f", str(folder / "hub.py")],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    started = Hub(f"https://{host.address}:{public}", folder, token, process, schedulers)
    try:
        wait_until(lambda: _answers(started))
        yield started
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    wait_until(lambda: not processes_in(folder))


def signed_in(hub: Hub, user: str, password: str) -> int:
    """What a browser is answered that fills in the form of the first page: 302 leads on, 403 does not."""
    import requests

    browser = requests.Session()
    browser.trust_env, browser.verify = False, hub.authority
    page = browser.get(f"{hub.url}/hub/login", timeout=30)
    token = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
    assert token is not None, page.text
    form = {"username": user, "password": password, "_xsrf": token[1]}
    return browser.post(f"{hub.url}/hub/login", data=form, timeout=30, allow_redirects=False).status_code


KINDS = ("hub", "gateway", "limits", "environments")


def processes_in(folder: Path) -> list[psutil.Process]:
    """Processes that work in a folder, or were told of it, other than those that run the tests."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            told = " ".join(process.cmdline())
            if process.pid != os.getpid() and str(folder) in f"{process.cwd()} {told}":
                found.append(process)
    return found


def certify(folder: Path, address: str) -> None:
    """An authority of our own, and a certificate for the hub, under the names that the settings want."""
    made = folder / "made"
    make_certificates(made, [address, "localhost"])
    for ours, theirs in {"ca": "ca", "hub": "scheduler", "hub-key": "scheduler-key"}.items():
        shutil.copy(made / f"{theirs}.pem", folder / f"{ours}.pem")


def write_settings(path: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Tables as TOML; JSON's plain values are written as TOML's."""
    lines = []
    for name, table in tables.items():
        lines += [f"[{name}]", *_assignments(table)]
    path.write_text("\n".join(lines) + "\n")


def _assignments(table: Mapping[str, Any]) -> list[str]:
    return [f"{json.dumps(key)} = {_inline(value)}" for key, value in table.items()]


def _inline(value: Any) -> str:
    return f"{{{', '.join(_assignments(value))}}}" if isinstance(value, Mapping) else json.dumps(value)


def _answers(hub: Hub) -> bool:
    import requests

    assert hub.process.poll() is None, hub.log
    try:
        return bool(hub.ask("GET", "/services/dask-gateway/api/version", None).status_code == 200)
    except requests.exceptions.ConnectionError:
        return False
