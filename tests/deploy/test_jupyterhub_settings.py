"""What the settings of the hub refuse before anything starts, and what they give to whom."""

from __future__ import annotations

import importlib
import stat
import sys

import pytest

from tests.helpers.hub import DEPLOY, certify, write_settings


@pytest.fixture
def read(tmp_path, monkeypatch):
    """The settings that a file gives, whose environment is the one that runs the tests."""
    monkeypatch.syspath_prepend(str(DEPLOY))
    module = importlib.import_module("hub_settings")
    monkeypatch.setenv("NFS_HUB_SETTINGS", str(tmp_path / "settings.toml"))

    def read(**tables):
        write_settings(tmp_path / "settings.toml", {"environments": {"tested": sys.prefix}} | tables)
        return module.read_settings()

    return read


def test_what_is_not_said_is_as_it_is_shipped_and_on_this_machine_alone(read):
    settings = read(limits={"workers": 3})
    assert settings.url == "http://127.0.0.1:8000"
    assert settings.gateway["http"].startswith("127.0.0.1:") and settings.gateway["schedulers"].startswith("127.0.0.1:")
    assert settings.limits_of("alice", []).workers == 3
    assert 0 < settings.limits_of("alice", []).idle_minutes <= 60
    assert settings.hub["users"] == []


@pytest.mark.parametrize("address", ["0.0.0.0:8000", ":8000", "hub.example.org:443", "[::]:8000", "10.0.0.1:8000"])
def test_an_address_that_others_reach_needs_certificates(read, tmp_path, address):
    with pytest.raises(ValueError, match=r"passwords would go there unencrypted; give hub.certificates, or"):
        read(hub={"address": address})
    certify(tmp_path / "certificates", "127.0.0.1")
    assert read(hub={"address": address, "certificates": str(tmp_path / "certificates")}).url == f"https://{address}"


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "[::1]:8000", "localhost:8000"])
def test_addresses_of_this_machine_need_none(read, address):
    assert read(hub={"address": address}).url == f"http://{address}"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"hub": {"certificates": "/nowhere"}}, "/nowhere holds no hub.pem"),
        (
            {"gateway": {"http": "0.0.0.0:8500"}},
            "others reach the gateway by http://127.0.0.1:8000/services/dask-gateway",
        ),
        ({"environments": {"mine": "/nowhere"}}, "the environment 'mine' has no /nowhere/bin/dask; see README.md"),
        ({"limits": {"worker": 3}}, "limits has no worker; it may have clusters, workers, cores"),
        ({"limits": {"groups": {"large": {"core": 3}}}}, "limits.groups.large has no core; it may have clusters"),
        ({"limit": {}}, "the file has no limit; it may have hub, gateway, limits, environments"),
    ],
)
def test_mistakes_are_named(read, tables, said):
    with pytest.raises(ValueError, match="settings.toml: ") as refused:
        read(**tables)
    assert said in str(refused.value)


def test_a_group_and_a_user_may_have_other_limits(read):
    limits = {"groups": {"large": {"workers": 30}, "small": {"workers": 1}}, "users": {"ann": {"clusters": 5}}}
    settings = read(limits={"clusters": 1} | limits)
    assert settings.limits_of("bob", []).workers == 8
    assert settings.limits_of("bob", ["small", "large"]).workers == 30, "the first that is listed counts"
    ann = settings.limits_of("ann", ["small"])
    assert (ann.workers, ann.clusters) == (1, 5)


def test_what_the_hub_keeps_is_read_by_nobody_else(read, tmp_path):
    settings = read(hub={"folder": str(tmp_path / "state")})
    assert stat.S_IMODE(settings.private.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.clusters.stat().st_mode) == 0o711


def test_the_shipped_files_hold_no_secret_and_are_complete():
    found = {path.name for path in DEPLOY.iterdir() if path.is_file()}
    assert found >= {"jupyterhub_config.py", "dask_gateway_config.py", "settings.toml", "requirements.txt", "README.md"}
    for path in DEPLOY.glob("*.*"):
        text = path.read_text().lower()
        assert not [word for word in ("api_token =", "password =", "cookie_secret =") if word in text], path.name
