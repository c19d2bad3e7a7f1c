"""What ``settings.toml`` says, checked, for the configurations of the hub and of the gateway."""

from __future__ import annotations

import ipaddress
import os
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXCEPTIONS = ("groups", "users")  # tables in that of the limits
PREFIX = "/services/dask-gateway"  # of the gateway's addresses, in the hub and in itself


@dataclass(frozen=True)
class Limits:
    """What one user may have; the comments of settings.toml say what is what."""

    clusters: int
    workers: int
    cores: int
    memory: float
    worker_cores: list[int]
    worker_memory: list[float]
    idle_minutes: float


@dataclass(frozen=True)
class Settings:
    """The tables of the file, the shipped ones below those of the file that was named."""

    path: Path
    hub: dict[str, Any]
    gateway: dict[str, Any]
    limits: dict[str, Any]
    environments: dict[str, str]

    @cached_property
    def private(self) -> Path:
        """The folder of the hub's secrets, which only its owner enters."""
        return _folder(self.public / "hub", 0o700)

    @cached_property
    def clusters(self) -> Path:
        """The folder of clusters, which users go through to those of their own."""
        return _folder(self.public / "clusters", 0o711)

    @cached_property
    def logs(self) -> Path:
        """The folder of what schedulers and workers say, for who runs the hub; users ask their clusters."""
        return _folder(self.public / "logs", 0o700)

    @cached_property
    def public(self) -> Path:
        """The folder of all of these, and of what every user may read."""
        return _folder(Path(self.hub["folder"]), 0o711)

    @cached_property
    def certificates(self) -> dict[str, str]:
        """The files of the certificates, as there are: ``hub``, ``hub-key`` and ``ca``."""
        if not self.hub["certificates"]:
            return {}
        folder = Path(self.hub["certificates"])
        return {path.stem: str(path) for path in sorted(folder.glob("*.pem")) if path.stem in ("hub", "hub-key", "ca")}

    @property
    def url(self) -> str:
        """Where browsers and sessions reach the hub."""
        return f"{'https' if self.certificates else 'http'}://{self.hub['address']}"

    def limits_of(self, user: str, groups: list[str]) -> Limits:
        """Those of all, as far as neither the user nor a group of theirs has others."""
        own = {name: value for name, value in self.limits.items() if name not in EXCEPTIONS}
        listed = self.limits["groups"]
        first = next((listed[group] for group in listed if group in groups), {})
        return Limits(**own | first | self.limits["users"].get(user, {}))

    def check(self) -> None:
        """Refuse what would open more than is meant, or cannot start."""
        for name in ("hub", "hub-key"):
            if self.hub["certificates"] and name not in self.certificates:
                raise ValueError(f"{self.path}: {self.hub['certificates']} holds no {name}.pem")
        if not self.certificates and not _is_loopback(self.hub["address"]):
            raise ValueError(
                f"{self.path}: {self.hub['address']} is not this machine alone, and passwords would go there "
                "unencrypted; give hub.certificates, or an address such as 127.0.0.1:8000"
            )
        if not _is_loopback(self.gateway["http"]):
            raise ValueError(
                f"{self.path}: gateway.http is {self.gateway['http']}, which is not this machine alone; others reach "
                f"the gateway by {self.url}{PREFIX}"
            )
        for name, prefix in self.environments.items():
            if not (Path(prefix) / "bin" / "dask").exists():
                raise ValueError(f"{self.path}: the environment {name!r} has no {prefix}/bin/dask; see README.md")


def read_settings() -> Settings:
    """The settings of this machine, checked."""
    shipped = HERE / "settings.toml"
    path = Path(os.environ.get("NFS_HUB_SETTINGS", shipped))
    settings = Settings(path, **_merged(path, _read(shipped), _read(path)))
    settings.check()
    return settings


def _merged(path: Path, shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The tables of a file over those that are shipped; what these do not know is refused."""
    _refuse_unknown(path, "the file", own, shipped)
    environments = own.pop("environments", shipped["environments"])
    exceptions = {kind: own.get("limits", {}).pop(kind, {}) for kind in EXCEPTIONS}
    for name, table in own.items():
        _refuse_unknown(path, name, table, shipped[name])
    for kind, names in exceptions.items():
        for name, table in names.items():
            _refuse_unknown(path, f"limits.{kind}.{name}", table, shipped["limits"])
    tables = {name: table | own.get(name, {}) for name, table in shipped.items()}
    return tables | {"limits": tables["limits"] | exceptions, "environments": environments}


def _folder(path: Path, mode: int) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


def _refuse_unknown(path: Path, where: str, given: dict[str, Any], known: dict[str, Any]) -> None:
    if unknown := given.keys() - known.keys():
        raise ValueError(f"{path}: {where} has no {', '.join(sorted(unknown))}; it may have {', '.join(known)}")


def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or nothing, which is every interface
        return False
