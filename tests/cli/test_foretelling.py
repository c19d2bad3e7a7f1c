"""``plan`` for data and hosts that are not there yet: what it says, what it refuses, and that it starts nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cli.main import cli
from nfs_dask.engine.cost_model import TERMS, Costs, usual_costs
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.commands import as_json, run

FAR = ("--workers", 1000, "--network", "10Gbit", "--rows", "1e10", "--features", "1e8", "--memory-limit", "4GiB")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "texts.zarr"
    nfs.ingest(GeneratedCorpus(2000, 5000), path)
    return path


@pytest.fixture
def store(tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("nfs_dask.cluster.finding.start_cluster", None)  # nobody starts workers to foretell
    return Path(shutil.copytree(written, tmp_path / written.name))


def test_what_is_foretold_is_said_with_its_assumptions_and_what_limits_it(store: Path) -> None:
    said = run("plan", store, *FAR, "--method", "multinomial", "-k", 100, "--price", 0.05).stdout
    assert "multinomial, k = 100 of 100,000,000 features" in said
    assert "over 10,000,000,000 rows x 100,000,000 features" in said
    words = " ".join(said.split())
    for part in (
        "Foretold not measured: 10,000,000,000 rows (there are 2,000)",
        "features: 100,000,000 (there are 5,000)",
        "1,000 worker(s) x 1 thread(s)",
        "prepare: asking workers",
        "spool: sorting entries into spool files",
        "panels: folding panels from spool files",
        "solve: choosing features, on the client",
        "Limit ",
        "over links",
        "one process",
        "at 0.05 an hour",
        "Assumes a core for each thread; links of 10 Gbit/s; data and spool behind them",
        "costs by ",
    ):
        assert part in words, part
    assert "Time " in said and said.count("Time ") == 1


def test_the_same_for_programs(store: Path) -> None:
    told = as_json("plan", store, *FAR, "--price", 2)
    forecast = told["forecast"]
    assert told["n_rows"] == 10**10 and told["resources"]["workers"] == 1000 and told["fits"]
    assert sum(forecast["terms"].values()) == pytest.approx(forecast["seconds"])
    assert forecast["cost"] == pytest.approx(2 * forecast["worker_hours"])
    assert forecast["worker_hours"] == pytest.approx(1000 * forecast["seconds"] / 3600)
    assert forecast["bottleneck"] in TERMS and forecast["moved_nbytes"] > told["read_nbytes"]
    slower = as_json("plan", store, *FAR[:2], "--network", "1Gbit", *FAR[4:])["forecast"]
    assert slower["seconds"] > forecast["seconds"] and slower["cost"] is None
    waiting = as_json("plan", store, *FAR, "--latency", 0.02)["forecast"]
    assert waiting["bottleneck"] == "piece"
    limited = as_json("plan", store, *FAR, "--store-rate", "1GB")["forecast"]
    assert limited["terms"]["load"] == pytest.approx(told["read_nbytes"] / 1e9)


def test_features_stay_as_they_are_unless_they_are_given(store: Path) -> None:
    told = as_json("plan", store, "--rows", 10**6)
    assert (told["n_rows"], told["n_features"]) == (10**6, 5000)
    assert as_json("plan", store, "--network", "1Gbit")["n_rows"] == 2000
    assert "forecast" not in as_json("plan", store)


def test_costs_come_from_a_file(store: Path, tmp_path: Path) -> None:
    content = usual_costs().to_json()
    tenfold = {name: 10 * cost for name, cost in content["seconds"].items()}
    (tmp_path / "mine.json").write_text(json.dumps(content | {"seconds": tenfold, "machine": "my cluster"}))
    usual, mine = (
        as_json("plan", store, "--rows", "1e9", *costs) for costs in ((), ("--costs", tmp_path / "mine.json"))
    )
    assert mine["forecast"]["seconds"] == pytest.approx(10 * usual["forecast"]["seconds"])
    assert mine["forecast"]["costs"]["machine"] == "my cluster"
    (tmp_path / "mine.json").write_text("{}")
    assert "holds no costs" in run("plan", store, "--rows", "1e9", "--costs", tmp_path / "mine.json", code=3).stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--network", "10GB", "bits per second with a unit, such as 10Gbit"),
        ("--network", "0Gbit", "bits per second with a unit, such as 10Gbit"),
        ("--rows", "many", "is not a whole number of one or more; give one such as 1000000 or 1e10"),
        ("--rows", "0", "is not a whole number of one or more"),
        ("--rows", "1.5", "is not a whole number of one or more"),
        ("--rows", "inf", "is not a whole number of one or more"),
        ("--features", "nan", "is not a whole number of one or more"),
        ("--price", "-1", "--price"),
    ],
)
def test_wrong_numbers_are_refused(store: Path, option: str, value: str, message: str) -> None:
    said = CliRunner().invoke(cli, ["plan", str(store), option, value])
    assert said.exit_code == 2
    assert message in " ".join(said.output.split())


def test_manifests_are_of_what_is_there(store: Path) -> None:
    job = ("--kubernetes", "--model", "s3://bucket/model", "--run", "s3://bucket/run")
    said = run("plan", store, *job, "--rows", "1e9", code=2).stderr
    assert "--kubernetes is about data that are there" in said


def test_workers_that_are_too_small_are_refused_as_ever(store: Path) -> None:
    refused = run("plan", store, *FAR[:-1], "400MiB", code=4)
    assert "Give each worker" in refused.stderr
    assert "Foretold" in refused.stdout


def test_a_calibration_is_of_workers_and_of_nothing_else(store: Path, tmp_path: Path) -> None:
    mine = ("--calibrate", tmp_path / "mine.json")
    assert "say which with --scheduler ADDRESS or --workers N" in run("plan", store, *mine, code=2).stderr
    assert "measures what is there" in run("plan", store, *mine, "--rows", "1e9", code=2).stderr
    assert not (tmp_path / "mine.json").exists()


@pytest.mark.slow
def test_a_cluster_is_calibrated_and_its_costs_are_plans(tmp_path: Path) -> None:
    write_store(GeneratedCorpus(40_000, 200_000), tmp_path / "texts.zarr", layout=Layout(block=1 << 18))
    store, mine = tmp_path / "texts.zarr", tmp_path / "mine.json"
    said = run("plan", store, "--workers", 2, "--memory-limit", "1GiB", "--calibrate", mine).stdout
    assert "Written to" in said
    costs = Costs.load(mine)
    assert costs.machine.startswith("2 worker(s) x 1 thread(s)")
    assert costs.seconds["entry"] + costs.seconds["state"] > 0 and costs.seconds["spool"] > 0
    assert costs.seconds["task"] == usual_costs().seconds["task"]
    told = as_json("plan", store, "--workers", 50, "--rows", "1e9", "--costs", mine)["forecast"]
    assert told["costs"]["machine"] == costs.machine and told["seconds"] > 0
