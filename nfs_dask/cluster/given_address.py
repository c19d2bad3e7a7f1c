"""Schedulers that are told by a client or a cluster in place of an address."""

from __future__ import annotations

from typing import Any

from nfs_dask.errors import ClusterError, InputError
from nfs_dask.graphs import IN_A_THREAD

ACCEPTED = (
    "the address of a scheduler, such as 'tcp://10.0.0.1:8786', a distributed.Client, a cluster such as "
    "distributed.LocalCluster, or None for the current client"
)


class GivenAddress(str):
    """The address of a scheduler, with the client or cluster that told it.

    Copies in this process share that, and with it its certificates. What leaves the process is an address.
    """

    __slots__ = ("given",)
    given: Any

    @classmethod
    def of(cls, given: Any) -> GivenAddress:
        """Of a client or a cluster; anything else is refused."""
        address = cls(_address(given))
        address.given = given
        return address

    def __copy__(self) -> GivenAddress:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> GivenAddress:
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def check(self) -> None:
        """Refuse what was closed since."""
        if not _is_open(self.given):
            raise ClusterError(
                f"the {type(self.given).__name__} of {self} that the engine was given is closed; give one that is open"
            )


def checked_address(address: Any) -> str | None:
    """The address of whatever tells a scheduler."""
    if address is None or isinstance(address, GivenAddress):
        return address
    if isinstance(address, str):
        if not address.strip():
            raise InputError(f"the address of a scheduler is {address!r}; give {ACCEPTED}")
        return address
    return GivenAddress.of(address)


def is_client(given: Any) -> bool:
    """Whether this is a client of a scheduler."""
    from distributed import Client

    return isinstance(given, Client)


def _address(given: Any) -> str:
    if not is_client(given) and not hasattr(type(given), "scheduler_address"):
        raise InputError(f"DaskEngine was given {given!r:.80}, which tells no scheduler; give {ACCEPTED}")
    name = type(given).__name__
    if getattr(given, "asynchronous", False):
        raise InputError(f"the {name} is asynchronous, and passes are waited for; give another one, or {IN_A_THREAD}")
    if not _is_open(given):
        raise ClusterError(f"the {name} is closed; give one that is open, or the address of a scheduler")
    return str(given.scheduler.address if is_client(given) else given.scheduler_address)


def _is_open(given: Any) -> bool:
    status = given.status
    if is_client(given):
        return bool(status == "running")
    return getattr(status, "name", status) == "running"  # a word of an enumeration, or of clusters by others the word
