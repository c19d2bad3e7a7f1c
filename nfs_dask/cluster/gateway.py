"""Clusters of a Dask Gateway, by name: the gateway tells where their schedulers are, and has their certificates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from nfs_dask.cluster.addresses import OWN_GATEWAY, is_loopback
from nfs_dask.errors import ClusterError

SCHEME = "gateway://"
START = "start one in Python: dask_gateway.Gateway().new_cluster()"


def is_gateway(address: str) -> bool:
    """Whether an address means a cluster of a gateway: ``gateway``, or ``gateway://HOST:PORT/NAME``.

    >>> is_gateway("gateway"), is_gateway("gateway://10.0.0.1:8586/0123abcd"), is_gateway("tls://gateway:8786")
    (True, True, False)
    """
    return address == OWN_GATEWAY or address.startswith(SCHEME)


def parts_of(address: str) -> tuple[str | None, str]:
    """Where the proxy of the schedulers is, None if Dask's configuration says it, and the name of the cluster.

    >>> parts_of("gateway://10.0.0.1:8586/0123abcd"), parts_of("gateway://0123abcd")
    (('gateway://10.0.0.1:8586', '0123abcd'), (None, '0123abcd'))
    """
    proxy, _, name = address.removeprefix(SCHEME).strip("/").rpartition("/")
    return (SCHEME + proxy if proxy else None), name


def is_gateway_here(address: str) -> bool:
    """Whether the proxy of the schedulers is on this machine alone, and so are its clusters.

    >>> is_gateway_here("gateway://127.0.0.1:8586/0123abcd"), is_gateway_here("gateway://10.0.0.1:8586/0123abcd")
    (True, False)
    """
    proxy = parts_of(address)[0] if address.startswith(SCHEME) else None
    return proxy is not None and is_loopback("tls://" + proxy.removeprefix(SCHEME))


def is_of_gateway(client: Any) -> bool:
    """Whether a gateway made the cluster of a client."""
    return getattr(client.cluster, "gateway", None) is not None


def gateway_maximum(dask_scheduler: Any) -> int | None:
    """Return how many workers an adaptive cluster of a gateway may grow to, which only its scheduler knows."""
    service = dask_scheduler.services.get("gateway")
    return service.maximum if getattr(service, "adapt_task", None) is not None else None


@contextmanager
def connect_to_gateway(address: str) -> Iterator[Any]:
    """A client of a gateway's cluster, closed at the end; the cluster stays.

    Where the gateway is, and how it knows the user, is said by Dask's configuration, as it is in sessions of a hub.
    """
    with ExitStack() as stack:
        try:
            client = stack.enter_context(_opened(address, stack))
        except ClusterError:
            raise
        except Exception as error:  # of the gateway's own kinds, of its HTTP library's, and of the network
            raise ClusterError(
                f"{address} cannot be reached ({_reason(error)}); see that the gateway runs, that "
                "DASK_GATEWAY__ADDRESS is its address, and that the cluster is yours"
            ) from error
        yield client


def _opened(address: str, stack: ExitStack) -> Any:
    try:
        from dask_gateway import Gateway
    except ImportError:
        raise ClusterError(f"{address} needs dask-gateway; pip install 'nfs-dask[gateway]'") from None
    proxy, name = parts_of(address)
    gateway = Gateway(proxy_address=proxy)
    stack.callback(_close, gateway)
    if address == OWN_GATEWAY:
        name = _only(gateway)
    cluster = stack.enter_context(gateway.connect(name))
    return cluster.get_client(set_as_default=False)


def _close(gateway: Any) -> None:
    """For good: when it is deleted it would close itself once more, and say that its loop does not run."""
    gateway.close()
    gateway._asynchronous = True  # noqa: SLF001 - which it leaves to the caller to close


def _only(gateway: Any) -> str:
    """The name of the user's cluster, if there is one only."""
    names = [report.name for report in gateway.list_clusters()]
    if not names:
        raise ClusterError(f"you have no cluster at {gateway.address}; {START}")
    if len(names) > 1:
        one = SCHEME + names[0]
        raise ClusterError(f"you have {len(names)} clusters at {gateway.address}; name one: --scheduler {one}")
    return str(names[0])


def _reason(error: Exception) -> str:
    status = getattr(error, "status", None)
    if status in (401, 403):
        return f"the gateway answered {status}: it does not know you, or you may not do this"
    return str(error).partition("\n")[0] or type(error).__name__
