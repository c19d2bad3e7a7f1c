"""``nfs-dask doctor``: whether a pass would work here, and on that cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, show_line, table
from nfs_dask.errors import ClusterError
from nfs_dask.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.cluster.examine import Machine, Report


@click.command()
@click.option("--store", metavar="STORE", help="A dataset that this machine and every worker must reach.")
@click.option("--make-certificates", "certificates", metavar="DIR", help="Write what mutual TLS needs, and do no more.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name or address for the certificates; repeat.")
@cluster_options
@json_option
def doctor(store: str | None, certificates: str | None, hosts: tuple[str, ...], cluster: ClusterOptions) -> None:
    """Compare versions, memory, encryption and access to data.

    Without --scheduler it looks at this machine only. With it, it also knocks from outside: who gets in without
    encryption or without a certificate, what certificates are worth, and who sees the dashboard. --scheduler gateway is
    your cluster at a Dask Gateway, and gateway://NAME the one of several that has that name. Exit code 4 means that
    something stands in the way of a pass; the message names it.

    \b
    nfs-dask doctor
    nfs-dask doctor --scheduler tcp://127.0.0.1:8786 --store s3://bucket/mail.zarr
    nfs-dask doctor --scheduler gateway
    nfs-dask doctor --make-certificates certs --host scheduler.example.org
    nfs-dask doctor --scheduler tls://scheduler.example.org:8786 \\
        --tls-ca certs/ca.pem --tls-cert certs/client.pem --tls-key certs/client-key.pem
    """
    if certificates is not None:
        _make_certificates(certificates, hosts)
        return
    if hosts:
        raise click.UsageError("--host names machines for certificates; it goes with --make-certificates DIR")
    from nfs_dask.cluster.examine import examine
    from nfs_dask.cluster.tls_audit import audit_tls

    with cluster.client() as client:
        report = examine(client, store, settings=True)
        if client is not None:
            audit_tls(report, client)
    answer(report.to_json(), lambda console: _show(report, console))
    if not report.healthy:
        raise ClusterError("; ".join(report.problems))


def _make_certificates(folder: str, hosts: tuple[str, ...]) -> None:
    from nfs_dask.cluster.tls import DEFAULT_HOSTS, make_certificates

    files = [str(path) for path in make_certificates(folder, hosts or DEFAULT_HOSTS)]

    def show(console: Console) -> None:
        show_line("\n".join(files), console)
        show_line("Give each machine ca.pem and its own pair; keep ca-key.pem to yourself, or delete it.", console)

    answer({"files": files}, show)


def _show(report: Report, console: Console) -> None:
    workers = [node for node in report.nodes if node.role == "worker"]
    others = [node for node in report.nodes if node.role != "worker"]
    columns = ["", *(node.role for node in others), *(["workers"] if workers else [])]
    found = [name for name in report.nodes[0].versions if any(node.versions.get(name) for node in report.nodes)]
    rows = [[name, *(_version(node, name) for node in others), *_versions(workers, name)] for name in found]
    console.print(table(None, columns, rows))
    for node in report.nodes:
        if node.threads is not None:
            limit = format_bytes(node.memory_limit) if node.memory_limit else "no memory limit"
            show_line(f"{node.name}: {node.threads} thread(s), {limit}", console)
    if report.encrypted is not None:
        show_line("traffic is encrypted" if report.encrypted else "traffic is not encrypted", console)
    for note in report.notes:
        show_line(f"note: {note}", console)
    for problem in report.problems:
        show_line(f"PROBLEM: {problem}", console)
    if report.healthy:
        show_line("nothing stands in the way", console)


def _version(node: Machine, package: str) -> str:
    return node.versions.get(package) or "-"


def _versions(workers: list[Machine], package: str) -> list[str]:
    """One cell for all workers, whose versions are usually the same."""
    return [" | ".join(sorted({_version(worker, package) for worker in workers}))] if workers else []
