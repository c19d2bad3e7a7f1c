"""Certificates of ours, as doctor makes them, and such as must not open anything."""

from __future__ import annotations

import shutil
import ssl
from dataclasses import dataclass
from pathlib import Path

import distributed

from nfs_dask.cluster.tls import ROLES, _Authority, make_certificates

KINDS = ("ours", "foreign", "expired")


@dataclass(frozen=True)
class Certificates:
    """A folder with a folder for each kind; ``expired`` are of our authority, and ended three minutes ago."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, ours: Path | None = None) -> Certificates:
        """All kinds; ours are made, or those of another folder."""
        if ours is None:
            make_certificates(folder / "ours")
        else:
            shutil.copytree(ours, folder / "ours")
        make_certificates(folder / "foreign")
        _make_expired(folder / "ours", folder / "expired")
        return cls(folder)

    def of(self, role: str, kind: str = "ours") -> dict[str, str]:
        """The files of a role: authority, certificate and key."""
        files = {"ca": "ca.pem", "cert": f"{role}.pem", "key": f"{role}-key.pem"}
        return {name: str(self.folder / kind / file) for name, file in files.items()}

    def options(self, role: str, kind: str = "ours") -> list[str]:
        """As ``dask scheduler`` and ``dask worker`` take them."""
        files = self.of(role, kind)
        return ["--tls-ca-file", files["ca"], "--tls-cert", files["cert"], "--tls-key", files["key"]]

    def security(self) -> distributed.Security:
        settings = {"tls_ca_file": str(self.folder / "ours" / "ca.pem")}
        for role in ROLES:
            files = self.of(role)
            settings |= {f"tls_{role}_cert": files["cert"], f"tls_{role}_key": files["key"]}
        return distributed.Security(require_encryption=True, **settings)

    def context(self, kind: str) -> ssl.SSLContext:
        """Of a client with a certificate of some kind, which trusts whoever answers."""
        files = self.of("client", kind)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(files["cert"], files["key"])
        return context


def _make_expired(ours: Path, folder: Path) -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    authority = _Authority(days=-0.002)  # type: ignore[arg-type]  # they begin five minutes ago
    authority._key = load_pem_private_key((ours / "ca-key.pem").read_bytes(), None)
    authority._certificate = load_pem_x509_certificate((ours / "ca.pem").read_bytes())
    folder.mkdir()
    shutil.copy(ours / "ca.pem", folder)
    for role in ROLES:
        certificate, key = authority.issue(role, ["localhost", "127.0.0.1"])
        (folder / f"{role}.pem").write_bytes(certificate)
        (folder / f"{role}-key.pem").write_bytes(key)
