"""info about saved models and run folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.run_status import is_run, read_run
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from tests.helpers.commands import as_json, run
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50)  # 12 blocks
ODD = "[red]<b>odd</b>[/red]\x1b[31m"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a store and a model."""
    folder = tmp_path_factory.mktemp("made")
    dataset = nfs.ingest(CORPUS, folder / "corpus.zarr")
    nfs.SparseMultinomialNB(15, alpha=0.5).fit(dataset).save(folder / "model")
    return folder


@pytest.fixture
def model(tmp_path: Path, made: Path) -> Path:
    """A model, beside the store that it is of."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True)) / "model"


# Models


def test_a_model_for_people(model: Path) -> None:
    text = run("info", model).stdout
    assert "multinomial, 15 of 300 features" in text
    assert "no other choice of as many features is better" in text
    assert "alpha 0.5" in text and "class_prior" not in text
    assert "documents    600" in text
    for names in nfs.load_model(model).top_features(10).values():
        assert all(name in text for name, _ in names)


def test_odd_labels_and_names_of_a_model_are_harmless(tmp_path: Path) -> None:
    X = sp.csr_array(np.array([[3, 0, 1], [0, 3, 1]] * 10))
    dataset = nfs.ingest(X, tmp_path / "odd.zarr", labels=np.array([ODD, "ham"] * 10), names=[ODD, "b", "c"])
    nfs.SparseMultinomialNB(2).fit(dataset).save(tmp_path / "m")
    text = run("info", tmp_path / "m").stdout
    assert "\x1b" not in text
    assert text.count("[red]<b>odd</b>[/red]\\x1b[31m") >= 2
    assert ODD in as_json("info", tmp_path / "m")["classes"]


def test_weights_without_bound_are_told(tmp_path: Path) -> None:
    X = sp.csr_array(np.array([[3, 0, 1, 2], [0, 3, 1, 1]] * 10))
    nfs.SparseMultinomialNB(3, alpha=0.0).fit(X, [0, 1] * 10).save(tmp_path / "m")
    assert "+inf" in run("info", tmp_path / "m").stdout
    tops = as_json("info", tmp_path / "m")["top_features"]
    assert ["x0", None] in tops["0"], "JSON has no infinity"


def test_options_of_datasets_are_refused_elsewhere(model: Path) -> None:
    assert "for datasets" in run("info", model, "--verify", code=2).stderr
    assert "for datasets" in run("info", model, "--label-column", "y", code=2).stderr


def test_a_damaged_model_is_named(model: Path) -> None:
    (model / "model.json").write_text("{")
    assert "model.json" in run("info", model, code=3).stderr


# Runs


def interrupted(folder: Path, panels: int | None, monkeypatch: pytest.MonkeyPatch, at_block: int = 7) -> None:
    """A pass over 12 blocks that stopped before one of them, with what it had on disk."""
    monkeypatch.setattr("nfs_dask.engine.tasks.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("nfs_dask.engine.plan.BATCH_NBYTES", CORPUS.block_nbytes)
    (folder.parent / "marks").mkdir()
    source = Misbehaving(CORPUS, "raise", at_block=at_block, marks=str(folder.parent / "marks"))
    engine = nfs.SerialEngine(panels=panels, run=str(folder))
    with pytest.raises(OSError, match="enough"):
        engine.reduce(ClassCounts(3), source)


@pytest.mark.parametrize("panels", [1, 3])
def test_an_interrupted_run_tells_how_far_it_got(tmp_path: Path, panels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    interrupted(folder, panels, monkeypatch)
    values = as_json("info", folder)
    assert values["type"] == "run"
    assert (values["rows"], values["features"], values["fingerprint"]) == (600, 300, CORPUS.fingerprint)
    assert values["finished"] is False
    assert values["nbytes"] == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    (one,) = values["passes"]
    assert (one["statistic"], one["blocks_done"], one["blocks"]) == ("class_counts", 7, 12)
    assert one["finished"] is False
    assert one["plan"]["panels"] >= panels
    text = run("info", folder).stdout
    assert "7 of 12" in text
    nfs.SerialEngine(panels=panels, run=str(folder)).reduce(ClassCounts(3), CORPUS)
    values = as_json("info", folder)
    assert values["finished"] is True
    assert values["passes"][0]["blocks_done"] == 12
    assert "12 of 12" in run("info", folder).stdout


def test_a_run_without_a_pass(tmp_path: Path) -> None:
    identity = {"rows": 5, "features": 3, "fingerprint": ODD}
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "data": identity}))
    text = run("info", tmp_path).stdout
    assert "No pass has begun" in text
    assert "\x1b" not in text
    assert as_json("info", tmp_path)["finished"] is False


def test_damaged_runs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    interrupted(folder, 1, monkeypatch)
    (checkpoint,) = (folder / "class_counts" / "checkpoints").iterdir()
    for content in (b"", b"PK", checkpoint.read_bytes()[:100]):
        checkpoint.write_bytes(content)
        with pytest.raises(StoreError, match=f"{checkpoint.name} is truncated, damaged .* run again"):
            read_run(folder)
    write_arrays(Folder(str(checkpoint.parent)), checkpoint.name, {}, {"coverage": 3})
    with pytest.raises(StoreError, match=f"{checkpoint.name} is truncated, damaged .* run again"):
        read_run(folder)
    for content in (b"{", b"[]", b"{}"):
        (folder / "class_counts" / "plan.json").write_bytes(content)
        assert "plan.json" in run("info", folder, code=3).stderr
    for data in (3, {}, {"rows": "many", "features": 1, "fingerprint": ""}, {"rows": [], "features": 1}):
        (folder / "run.json").write_text(json.dumps({"format": 1, "data": data}))
        assert "run.json" in run("info", folder, code=3).stderr
    (folder / "run.json").write_text('{"format": 99}')
    assert "format 99" in run("info", folder, code=3).stderr


def test_what_is_a_run_and_what_is_not(tmp_path: Path, model: Path) -> None:
    assert not is_run(model)
    assert not is_run(tmp_path / "corpus.zarr")
    assert not is_run(tmp_path / "nowhere")
    assert as_json("info", tmp_path / "corpus.zarr")["type"] == "dataset"


@pytest.mark.parametrize("panels", [1, 7])
def test_a_pass_whose_result_is_kept_with_the_data_is_finished(tmp_path: Path, panels: int) -> None:
    dataset = nfs.ingest(GeneratedCorpus(300, 400, 2, planted=5), tmp_path / "corpus.zarr")
    run = tmp_path / "run"
    assert not dataset.reduce(dataset.class_counts(), SerialEngine(panels=panels, run=str(run))).reused
    found = read_run(run)
    assert found.finished
    assert [one.blocks_done for one in found.passes] == [dataset.source.n_blocks]
