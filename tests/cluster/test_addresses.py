"""Which addresses of schedulers are of this machine alone, which are encrypted, and which are refused."""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import dask
import psutil
import pytest
from distributed.comm.addressing import parse_address, parse_host_port
from hypothesis import given
from hypothesis import strategies as st

import nfs_dask as nfs
from nfs_dask.cluster import addresses
from nfs_dask.cluster.addresses import check_encryption, is_encrypted, is_loopback, warn_unless_encrypted
from nfs_dask.cluster.finding import connect, find_client
from nfs_dask.errors import InputError, NfsDaskWarning
from tests.helpers.commands import run

ELSEWHERE = "tcp://198.51.100.7:8786"  # of documentations: nobody has it

LOOPBACK = """
    tcp://127.0.0.1:8786 127.0.0.1:8786 tcp://127.8.9.10:1 tls://localhost:1 localhost:1 LOCALHOST:1 tcp://[::1]:8786
    tcp://[::ffff:127.0.0.1]:8786 ws://127.0.0.1:1 ucx://127.0.0.1:1 inproc://192.168.0.1/12/1 tcp://127.0.0.1
""".split()
NOT_LOOPBACK = """
    tcp://10.0.0.1:8786 scheduler.example.org:8786 127.example.org:8786 127.0.0.1.example.org:8786
    tcp://127.0.0.1.evil.org:1 tcp://localhost.evil.org:1 tcp://evil-localhost:1 tcp://0.0.0.0:8786 tcp://[::]:8786
    tcp://127.0.0.1:1@evil.org:8786 tcp://127.0.0.1@evil.org:8786 tcp://localhost@evil.org:1 tcp://evil.org#127.0.0.1:1
    tcp://evil.org/127.0.0.1:1 tcp://127.0.0.1/evil.org:1 tcp://evil.org?127.0.0.1:1 tcp://[::1]evil.org:1
    tcp://[::1%eth0]:1 tcp://[::1].evil.org:1 tcp://[::ffff:10.0.0.1]:1 tcp://127.1:1 tcp://0x7f.0.0.1:1
    tcp://2130706433:1 tcp://127.0.0.1.:1 tcp://::1:8786 tcp://:8786 tcp:// tcp://\uff11\uff12\uff17.0.0.1:1
    tcp://127.0.0.1:80:1 tcp://127.0.0.1\\evil.org:1 inproc://tcp://evil.org:1 tcp://inproc://evil.org:1
    unix:///tmp/socket http://127.0.0.1:1
""".split()


@pytest.mark.parametrize("address", LOOPBACK)
def test_addresses_of_this_machine_alone(address: str) -> None:
    assert is_loopback(address)
    check_encryption(address)


@pytest.mark.parametrize("address", [*NOT_LOOPBACK, "tcp://127.0.0.1 evil.org:1", "tcp://127.0.0.1:1\n", " tcp://::1"])
def test_addresses_that_only_look_like_it(address: str) -> None:
    assert not is_loopback(address)
    with pytest.raises(InputError, match="is not encrypted, and whoever reaches such a scheduler can run code"):
        check_encryption(address)


@given(
    st.from_regex(r"((tcp|tls|ws|)://)?[\[\]@/?#:.%0-9a-flochst-]{1,24}(:[0-9]{1,6})?", fullmatch=True)
    | st.sampled_from([*LOOPBACK, *NOT_LOOPBACK]).flatmap(
        lambda known: st.tuples(st.integers(0, len(known)), st.sampled_from("@/#?:[]%.\\ 0")).map(
            lambda cut: known[: cut[0]] + cut[1] + known[cut[0] :]
        )
    )
)
def test_where_dask_would_go_is_loopback(address: str) -> None:
    """Whatever passes for this machine is an address that Dask reads as one of loopback, or refuses."""
    if not is_loopback(address) or address.startswith("inproc://"):
        return
    try:
        host, _ = parse_host_port(parse_address(address)[1], 8786)
    except ValueError:  # Dask goes nowhere
        return
    ip = None if host.lower() == "localhost" else ipaddress.ip_address(host)
    assert ip is None or ip.is_loopback or ip.ipv4_mapped.is_loopback


def test_what_is_encrypted() -> None:
    assert all(map(is_encrypted, ["tls://10.0.0.1:1", "wss://a:1", "gateway://a:1/clusters/b"]))
    assert not any(map(is_encrypted, ["tcp://10.0.0.1:1", "ws://a", "ucx://a", "10.0.0.1:1", "TLS://a", "tls:/a"]))
    with dask.config.set({"distributed.comm.default-scheme": "tls"}):
        assert is_encrypted("10.0.0.1:1")


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("tcp://0.0.0.0:8786", r"\(0.0.0.0 means every interface; a scheduler that listens on loopback here is at 127"),
        ("tcp://scheduler:8786", r"\(names are not looked up"),
        (ELSEWHERE, "on its workers; start it with certificates"),
    ],
)
def test_refusals_say_what_was_mistaken(address: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"{address} is not encrypted.*{hint}.*or say insecure=True"):
        check_encryption(address)


def test_an_interface_of_this_machine_is_reached_by_others() -> None:
    found = [
        one.address
        for some in psutil.net_if_addrs().values()
        for one in some
        if one.family.name == "AF_INET" and not one.address.startswith("127.")
    ]
    if not found:
        pytest.skip("this machine has loopback only")
    with pytest.raises(InputError, match="this is an address of this machine, but others reach it"):
        check_encryption(f"tcp://{found[0]}:8786")


def test_on_purpose_it_is_allowed() -> None:
    check_encryption(ELSEWHERE, insecure=True)
    with dask.config.set({"nfs-dask.insecure": True}):
        check_encryption(ELSEWHERE)
    with dask.config.set(dask.config.collect_env({"DASK_NFS_DASK__INSECURE": "True"})):
        check_encryption(ELSEWHERE)


@pytest.mark.parametrize("address", [ELSEWHERE, "tcp://127.0.0.1:8786", "scheduler:8786"])
def test_certificates_go_with_encryption_only(address: str) -> None:
    with pytest.raises(InputError, match=f"certificates were given, but {address} is not encrypted; write tls://"):
        check_encryption(address, insecure=True, certificates=True)


# Every way to a scheduler


@pytest.fixture
def told() -> Iterator[None]:
    """Nobody has been warned of anything yet."""
    addresses._warned.clear()
    yield
    addresses._warned.clear()


@pytest.mark.parametrize("address", [ELSEWHERE, "198.51.100.7:8786", "ws://198.51.100.7:1", "ucx://198.51.100.7:1"])
def test_no_way_leads_to_a_plain_scheduler_elsewhere(address: str) -> None:
    with pytest.raises(InputError, match="insecure=True"), connect(address):
        pass
    with pytest.raises(InputError, match="insecure=True"), find_client(address, None, None):
        pass
    engine = nfs.DaskEngine(address)
    for act in (engine.executor, lambda: nfs.SparseMultinomialNB(2, engine=engine).fit([[1, 0], [0, 1]], [0, 1])):
        with pytest.raises(InputError, match="insecure=True"):
            act().__enter__()


def test_commands_refuse_it_in_their_words() -> None:
    shown = run("doctor", "--scheduler", ELSEWHERE, code=2).stderr
    assert f"Error: {ELSEWHERE} is not encrypted, and whoever reaches such a scheduler can run code" in shown
    assert "or say --insecure if nobody else reaches it" in shown


def test_an_encrypted_address_takes_certificates() -> None:
    with pytest.raises(InputError, match="takes certificates, and there are none; name them in Dask's configuration"):
        nfs.DaskEngine("tls://198.51.100.7:8786").executor().__enter__()
    shown = run("doctor", "--scheduler", "tls://198.51.100.7:8786", code=3).stderr
    assert "or --tls-ca, --tls-cert and --tls-key to a command" in shown


def test_of_a_client_that_is_there_it_is_warned_once(told: None, monkeypatch: pytest.MonkeyPatch) -> None:
    there = SimpleNamespace(scheduler=SimpleNamespace(address=ELSEWHERE))
    monkeypatch.setattr("nfs_dask.cluster.finding.current_client", lambda: there)
    warned = pytest.warns(NfsDaskWarning, match=f"traffic with {ELSEWHERE} is not encrypted.*set nfs-dask.insecure in")
    with warned, find_client(None, None, None) as client:
        assert client is there
    with find_client(None, None, None):  # a second warning would be an error here
        pass


def test_nor_is_it_warned_of_what_is_safe_or_on_purpose(told: None) -> None:
    with warnings.catch_warnings(action="error"):
        for address in (
            "tls://198.51.100.7:1",
            "inproc://198.51.100.7/1/1",
            "tcp://127.0.0.1:1",
            "gateway://a:1/clusters/b",
        ):
            warn_unless_encrypted(address)
        warn_unless_encrypted(ELSEWHERE, insecure=True)
        with dask.config.set({"nfs-dask.insecure": True}):
            warn_unless_encrypted(ELSEWHERE)
