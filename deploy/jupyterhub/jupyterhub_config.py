"""A JupyterHub whose users have Dask clusters by a gateway, on one machine.

What differs from place to place is in settings.toml. What is beyond it (another way to sign in, say) goes into a file
of your own that begins with ``load_subconfig("/path/to/this/jupyterhub_config.py")``.
"""

import os
import ssl
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from hub_settings import PREFIX, read_settings

c = get_config()  # noqa: F821
settings = read_settings()
first, prefix = next(iter(settings.environments.items()))

# Where the hub is, and where it keeps what must outlive it. All inner addresses are Jupyter's own: of this machine.
c.JupyterHub.bind_url = settings.url
c.JupyterHub.db_url = f"sqlite:///{settings.private / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(settings.private / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(settings.private / "proxy.pid")
if settings.certificates:
    c.JupyterHub.ssl_cert, c.JupyterHub.ssl_key = settings.certificates["hub"], settings.certificates["hub-key"]

# Who signs in: accounts of this machine, with their passwords.
c.Authenticator.allowed_users = {*settings.hub["users"], *settings.hub["admins"]}
c.Authenticator.admin_users = set(settings.hub["admins"])

# The gateway is a service of the hub: the hub starts it, makes its token, and tells it who a token belongs to. Outside,
# only its interface for programs is seen, through the hub's own address. Dashboards are not: they go through the server
# of the user, so whoever sees one has signed in.
c.JupyterHub.services = [
    {
        "name": "dask-gateway",
        "command": [sys.executable, "-m", "dask_gateway_server", "-f", str(HERE / settings.gateway["config"])],
        "environment": {"NFS_HUB_SETTINGS": str(settings.path)},
    }
]
c.Proxy.extra_routes = {f"{PREFIX}/api/": f"http://{settings.gateway['http']}"}

# Users may have clusters, and so may their sessions. If only some should, take the second scope from the role, and give
# it to groups.
MAY_HAVE_CLUSTERS = "access:services!service=dask-gateway"
c.JupyterHub.load_roles = [
    {"name": "user", "scopes": ["self", MAY_HAVE_CLUSTERS]},
    {"name": "dask-gateway", "services": ["dask-gateway"], "scopes": ["read:users:name", "read:users:groups"]},
]
c.Spawner.server_token_scopes = [
    "users:activity!user",
    "access:servers!server",
    "read:users:groups!user",
    MAY_HAVE_CLUSTERS,
]

# Sessions run from the first environment, as workers do unless something else is asked for.
port = settings.gateway["http"].rpartition(":")[2]
c.Spawner.cmd = [f"{prefix}/bin/jupyterhub-singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "PATH": f"{prefix}/bin:{os.environ['PATH']}",
    "DASK_GATEWAY__ADDRESS": settings.url + PREFIX,
    "DASK_GATEWAY__PROXY_ADDRESS": f"gateway://{settings.gateway['schedulers']}",
    "DASK_GATEWAY__PUBLIC_ADDRESS": f"{{JUPYTERHUB_SERVICE_PREFIX}}proxy/{port}{PREFIX}",
    "DASK_GATEWAY__AUTH__TYPE": "jupyterhub",
    "DASK_GATEWAY__CLUSTER__OPTIONS__ENVIRONMENT": first,
    "DASK_DISTRIBUTED__DASHBOARD__LINK": "{JUPYTERHUB_SERVICE_PREFIX}proxy/{port}/status",  # of clusters in the session
    "NFS_DASK_CLUSTER": "gateway",  # what notebooks/2-big-data.ipynb asks for
}


def trusted() -> str:
    """A file with the usual authorities and our own, as sessions speak to the hub and to the rest of the world."""
    usual = ssl.get_default_verify_paths().cafile
    bundle = settings.public / "authorities.pem"
    files = [Path(settings.certificates["ca"]), *([Path(usual)] if usual else [])]
    bundle.write_text("\n".join(file.read_text() for file in files))
    bundle.chmod(0o644)
    return str(bundle)


if "ca" in settings.certificates:
    c.Spawner.environment["SSL_CERT_FILE"] = trusted()
