"""What processes listen on."""

from __future__ import annotations

import ipaddress

import psutil


def listening(pid: int) -> set[tuple[int, str, int]]:
    """Process, address and port of every socket on which a process or one it has started waits for others."""
    found = set()
    root = psutil.Process(pid)
    for process in [root, *root.children(recursive=True)]:
        try:
            sockets = process.net_connections(kind="inet")
        except psutil.NoSuchProcess:
            continue
        waiting = [one for one in sockets if one.status == psutil.CONN_LISTEN or (one.type.name == "SOCK_DGRAM")]
        found |= {(process.pid, one.laddr.ip, one.laddr.port) for one in waiting if one.laddr}
    return found


def reached_from_elsewhere(sockets: set[tuple[int, str, int]]) -> set[tuple[int, str, int]]:
    """Those that are not on loopback."""
    return {one for one in sockets if not ipaddress.ip_address(one[1]).is_loopback}
