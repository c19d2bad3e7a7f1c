"""The gateway of jupyterhub_config.py, which starts it. Settings are in settings.toml."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from hub_settings import PREFIX, read_settings
from user_clusters import options_for

c = get_config()  # noqa: F821
settings = read_settings()

# Who asks is known by the token that the hub gave to the session.
c.DaskGateway.authenticator_class = "user_clusters.HubTokens"
c.DaskGateway.backend_class = "user_clusters.UserProcesses"
c.Proxy.address = settings.gateway["http"]
c.Proxy.prefix = PREFIX
c.Proxy.tcp_address = settings.gateway["schedulers"]

c.LocalBackend.clusters_directory = str(settings.clusters)
c.Backend.cluster_options = options_for
