"""Certificates of a Dask cluster: made by an authority of one's own, and examined where they are used."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nfs_dask.errors import InputError

ROLES = ("scheduler", "worker", "client")
DEFAULT_HOSTS = ("localhost", "127.0.0.1")
DEFAULT_DAYS = 365
SOON = dt.timedelta(days=30)


def make_certificates(
    folder: str | os.PathLike[str], hosts: Sequence[str] = DEFAULT_HOSTS, days: int = DEFAULT_DAYS
) -> list[Path]:
    """Write an authority and a certificate with its key for scheduler, worker and client; the files written.

    Each role has ``<role>.pem`` and ``<role>-key.pem``; everybody gets ``ca.pem``. Keys can be read by their owner
    only, and ``ca-key.pem`` is needed by nobody: keep it apart, or delete it. Existing files are never replaced.
    """
    authority = _Authority(days)
    target = Path(folder)
    files: dict[str, bytes] = {"ca.pem": authority.certificate_pem, "ca-key.pem": authority.key_pem}
    for role in ROLES:
        files[f"{role}.pem"], files[f"{role}-key.pem"] = authority.issue(role, hosts)
    if found := [name for name in files if (target / name).exists()]:
        raise InputError(f"{target} holds {', '.join(found)} already; name another folder, or delete them first")
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _write_new(target / name, content, 0o600 if name.endswith("-key.pem") else 0o644)
    return [target / name for name in files]


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that is born with its mode, so that a key is never readable by others, not even for a moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


class _Authority:
    """A certificate authority that lives as long as one call; what it issues outlives it."""

    def __init__(self, days: int) -> None:
        try:
            import cryptography.x509
        except ImportError:
            raise InputError(
                "certificates are made with the package cryptography, which is not installed; "
                "run: pip install 'nfs-dask[tls]'"
            ) from None
        self._x509 = cryptography.x509
        self._days = days
        self._key = _new_key()
        self._certificate = self._sign("nfs-dask authority", self._key, hosts=None)

    @property
    def certificate_pem(self) -> bytes:
        return _pem(self._certificate)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue(self, name: str, hosts: Sequence[str]) -> tuple[bytes, bytes]:
        """A certificate and its key, both as PEM."""
        key = _new_key()
        return _pem(self._sign(name, key, hosts)), _key_pem(key)

    def _sign(self, name: str, key: Any, hosts: Sequence[str] | None) -> Any:
        """A certificate for ``key``; without hosts, that of the authority itself."""
        from cryptography.hazmat.primitives import hashes

        x509 = self._x509
        subject = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
        authority = hosts is None
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))  # clocks of other machines may be behind
            .not_valid_after(now + dt.timedelta(days=self._days))
        )
        for extension, critical in self._extensions(key, hosts):
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self._key, hashes.SHA256())

    def _extensions(self, key: Any, hosts: Sequence[str] | None) -> list[tuple[Any, bool]]:
        x509 = self._x509
        authority = hosts is None
        uses = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
        )
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=authority, crl_sign=authority, decipher_only=False, **uses
        )
        extensions = [
            (x509.BasicConstraints(ca=authority, path_length=0 if authority else None), True),
            (usage, True),
            (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ]
        if hosts is not None:
            # Every role dials and answers: workers talk to each other.
            both = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
            extensions.append((x509.ExtendedKeyUsage(both), False))
            extensions.append((x509.SubjectAlternativeName([self._host(host) for host in hosts]), False))
        return extensions

    def _host(self, host: str) -> Any:
        try:
            return self._x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            return self._x509.DNSName(host)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(certificate.public_bytes(Encoding.PEM))


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class Trouble(NamedTuple):
    """Something about certificates. What is grave keeps others from answering."""

    grave: bool
    text: str


def troubles_of(security: Any) -> list[Trouble]:
    """What is wrong with the files of a ``distributed.Security``, as its client uses them."""
    files = security.get_tls_config_for_role("client")
    authority, certificate, key = files["ca_file"], files["cert"], files["key"] or files["cert"]
    if not authority or not certificate:
        return []
    return [*_of_certificates(authority, certificate), *_of_key(key)]


def _of_certificates(authority: str, certificate: str) -> Iterator[Trouble]:
    try:
        from cryptography import x509
    except ImportError:
        yield Trouble(False, "dates of certificates were not looked at; run: pip install 'nfs-dask[tls]'")
        return
    try:
        authorities, chain = (x509.load_pem_x509_certificates(_content(one)) for one in (authority, certificate))
    except (OSError, ValueError) as error:
        yield Trouble(True, f"a certificate cannot be read ({error})")
        return
    yield from _of_dates(authorities, f"the authority {_name(authority)}")
    yield from _of_dates(chain[:1], f"the certificate {_name(certificate)}")
    if not any(_vouches(one, chain[0]) for one in (*chain[1:], *authorities)):
        yield Trouble(True, f"the certificate {_name(certificate)} is not of the authority {_name(authority)}")


def _of_dates(certificates: Sequence[Any], name: str) -> Iterator[Trouble]:
    now = dt.datetime.now(dt.UTC)
    until = max(one.not_valid_after_utc for one in certificates)
    since = min(one.not_valid_before_utc for one in certificates)
    if until < now:
        yield Trouble(True, f"{name} has expired on {until:%Y-%m-%d}; make new ones, for all machines")
    elif since > now:
        yield Trouble(True, f"{name} is valid from {since:%Y-%m-%d} on; look at the clock of this machine")
    elif until < now + SOON:
        yield Trouble(False, f"{name} expires on {until:%Y-%m-%d}; make new ones, for all machines")


def _of_key(key: str) -> Iterator[Trouble]:
    if "\n" not in key and os.path.exists(key) and os.stat(key).st_mode & 0o077:
        yield Trouble(False, f"the key {key} can be read by others than you; chmod 600 {key}")


def _vouches(authority: Any, certificate: Any) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # noqa: BLE001 - a signature may be wrong in many ways
        return False
    return True


def _content(file: str) -> bytes:
    """A certificate, or what a file of it holds."""
    return file.encode() if "\n" in file else Path(file).read_bytes()


def _name(file: str) -> str:
    return "in memory" if "\n" in file else file
