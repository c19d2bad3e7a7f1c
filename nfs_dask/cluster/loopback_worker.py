"""A worker of this process that nobody on another machine reaches."""

from __future__ import annotations

from typing import Any

import distributed


class LoopbackWorker(distributed.Worker):
    """A worker whose HTTP server listens on loopback.

    Every worker of Dask has one. Without an address of its own it goes to that of the worker, and one that talks within
    the process has none: it would listen on all interfaces.
    """

    def start_http_server(self, routes: Any, dashboard_address: Any, *args: Any, **keywords: Any) -> None:
        super().start_http_server(routes, dashboard_address or "127.0.0.1:0", *args, **keywords)
