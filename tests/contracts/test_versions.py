"""What earlier versions wrote, opened by this one, and their results, found again. See make_version.py."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from tests.contracts import make_version
from tests.contracts.make_version import FITS, results_of, tables_of

ZIPS = sorted(Path(__file__).parent.glob("version-*.zip"))
CASES = [(store, name) for store, fits in FITS.items() for name in fits]
WITHOUT_DOCUMENTS = {"error", "searched", "multinomial", "smoothed", "always", "weighted", "bernoulli", "l2", "l1"}


@pytest.fixture(scope="module", params=ZIPS, ids=lambda path: path.stem)
def there(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("version")
    zipfile.ZipFile(request.param).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def recorded(there: Path) -> dict[str, np.ndarray]:
    with np.load(there / "results.npz") as arrays:
        return dict(arrays)


def of(recorded: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in recorded.items() if name.startswith(f"{prefix}/")}


def assert_the_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() >= expected.keys()
    for name, value in expected.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12 * np.abs(value).max(), err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


def assert_no_worse(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """The same to 1e-12; or a better support, whose bound is no looser."""
    if np.array_equal(found["support"], expected["support"]):
        # Another dual point may have as good a bound.
        names = expected.keys() - {"dual_point_", "upper_bound_", "dual_gap_", "certified_"}
        assert_the_same(found, {name: expected[name] for name in names})
    else:
        assert found["objective_"] > expected["objective_"]
    if "dual_gap_" in expected:
        assert found["dual_gap_"] <= expected["dual_gap_"] + 1e-12 * abs(expected["objective_"])
        assert found["certified_"] >= expected["certified_"]


@pytest.mark.parametrize(("store", "name"), CASES)
def test_models_predict_what_they_did(there: Path, recorded: dict[str, np.ndarray], store: str, name: str) -> None:
    expected = of(recorded, f"{store}/{name}")
    if not expected:
        pytest.skip("not of this version")
    assert_the_same(results_of(nfs.load_model(there / f"{store}.{name}.model"), store), expected)


@pytest.mark.parametrize(("store", "name"), CASES)
def test_fits_are_no_worse(there: Path, recorded: dict[str, np.ndarray], store: str, name: str) -> None:
    fitted = FITS[store][name].fit(nfs.open_dataset(there / store, reuse=False))
    assert_no_worse(results_of(fitted, store), of(recorded, f"{store}/{name}"))


def test_tables_are_the_same(there: Path, recorded: dict[str, np.ndarray]) -> None:
    found = tables_of(nfs.open_dataset(there / "texts", reuse=False))
    for name, value in found.items():
        np.testing.assert_allclose(value, recorded[f"texts/{name}"], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("store", FITS)
def test_stores_open(there: Path, store: str) -> None:
    assert nfs.open_dataset(there / store).fingerprint == json.loads((there / "fingerprints.json").read_text())[store]
    assert command("info", "--verify", store, cwd=there) == 0


def test_kept_statistics_are_used(there: Path, recorded: dict[str, np.ndarray], tmp_path: Path) -> None:
    """Without the documents, that which was kept is enough."""
    shutil.copytree(there / "texts", tmp_path / "texts")
    for name in ("data", "indices"):
        shutil.rmtree(tmp_path / "texts" / "X" / name / "c")
    for name in WITHOUT_DOCUMENTS - {"l1"}:
        fitted = FITS["texts"][name].fit(nfs.open_dataset(tmp_path / "texts"))
        assert_no_worse(results_of(fitted, "texts"), of(recorded, f"texts/{name}"))


def test_rows_are_added_to_an_old_store(there: Path, tmp_path: Path) -> None:
    named: dict[str, Any] = {"text_column": "text", "label_column": "topic"}
    shutil.copytree(there / "texts", tmp_path / "texts")
    more = nfs.ingest(there / "more.csv", tmp_path / "texts", append=True, **named)
    assert more.n_rows == 360
    fits = [nfs.SparseMultinomialNB(k=20).fit(dataset) for dataset in (more, nfs.open_dataset(there / "appended"))]
    assert fits[0].objective_ == fits[1].objective_
    np.testing.assert_array_equal(fits[0].get_support(), fits[1].get_support())


def command(*words: str, cwd: Path) -> int:
    return make_version.command(*words, cwd=cwd, env={**os.environ, "PYTHONPATH": os.getcwd()}).wait(timeout=120)


@pytest.mark.parametrize("run", ["finished", "ended"])
def test_runs_go_on(there: Path, recorded: dict[str, np.ndarray], run: str) -> None:
    assert command("status", run, cwd=there) == 0
    shutil.copytree(there / run, there / f"{run}.copy")
    resume = ("fit", "texts", f"{run}.model", "-k", "10", "--no-cache", "--resume", f"{run}.copy")
    assert command(*resume, cwd=there) == 0
    found = results_of(nfs.load_model(there / f"{run}.model"), "texts")
    assert_no_worse(found, of(recorded, "texts/multinomial"))
