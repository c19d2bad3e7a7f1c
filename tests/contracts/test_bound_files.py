"""Files of a store or a model that are whole, and in the wrong place, are refused."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from anndata import AnnData
from pandas import DataFrame
from scipy.sparse import random as random_matrix

import nfs_dask as nfs
from nfs_dask.errors import StoreError
from tests.helpers.commands import run

N_ROWS, N_GENES = 400, 300
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"]


def cells(seed: int) -> AnnData:
    """Genes counted in cells that have names, a label, numbers and texts."""
    rng = np.random.default_rng(seed)
    counts = random_matrix(N_ROWS, N_GENES, 0.1, "csr", random_state=seed)
    counts.data = rng.integers(1, 9, counts.nnz).astype(np.float32)
    obs = {
        "kind": rng.choice(["b", "t"], N_ROWS),
        "donor": rng.choice(["x", "y", "z"], N_ROWS),
        "age": rng.integers(20, 90, N_ROWS),
        "note": [f"{number:08d}" for number in rng.permutation(10**6)[:N_ROWS]],
    }
    frame = DataFrame(obs, index=[f"cell{number:06d}" for number in rng.permutation(10**5)[:N_ROWS]])
    return AnnData(counts, obs=frame, var=DataFrame(index=rng.permutation([f"gene{i:03d}" for i in range(N_GENES)])))


def texts(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 30)) for _ in range(N_ROWS)]


def read_all(store: Path) -> None:
    """Read all that a store says of its rows, as a new store of it would have it."""
    nfs.ingest(store, store.with_name("copy.zarr"), overwrite=True)


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores of the same shape and of other content."""
    for seed in (0, 1):
        nfs.ingest(cells(seed), tmp_path / f"{seed}.zarr", labels="kind")
    return tmp_path / "0.zarr", tmp_path / "1.zarr"


def objects(folder: Path) -> list[Path]:
    """What holds values."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")


def test_objects_of_another_store_are_refused(stores: tuple[Path, Path]) -> None:
    store, other = stores
    read_all(store)
    tried = set()
    for name in objects(store):
        mine, theirs = (store / name).read_bytes(), (other / name).read_bytes()
        array = str(name.parent.parent)
        # Nobody reads receipts but who verifies; categories and the index of columns are copies of what we read.
        if theirs == mine or array.endswith("categories") or array == "var/_index" or "receipts" in array:
            continue
        (store / name).write_bytes(theirs)
        with pytest.raises(StoreError, match="other (values|texts)"):
            read_all(store)
        assert "other" in run("info", store, "--verify", code=3).stderr
        (store / name).write_bytes(mine)
        tried.add(array)
    assert tried >= {"X/data", "X/indices", "X/indptr", "obs/kind/codes", "obs/donor/codes", "obs/age", "obs/note"}
    assert tried >= {"obs/_index", "nfs_dask/names/bytes"}
    read_all(store)


def test_nor_is_the_list_of_checksums_taken_from_another(stores: tuple[Path, Path]) -> None:
    store, other = stores
    for name in ("X/indices/c/0", "nfs_dask/receipts/1.json"):
        shutil.copy(other / name, store / name)
    with pytest.raises(StoreError, match="receipts/1.json is not the one that was written"):
        read_all(store)


def test_appended_rows_are_bound_too(stores: tuple[Path, Path]) -> None:
    """And who opened the store before goes on reading what it held."""
    store, other = stores
    opened = nfs.open_dataset(store)
    for path, seed in ((store, 0), (other, 1)):
        more = cells(seed)
        more.obs_names = [f"more{number}" for number in range(N_ROWS)]
        nfs.ingest(more, path, labels="kind", append=True)
    before = nfs.SparseMultinomialNB(k=5).fit(opened)
    assert list(before.class_count_) == [np.count_nonzero(cells(0).obs["kind"] == one) for one in "bt"]
    read_all(store)
    shutil.copy(other / "X/data/c/0", store / "X/data/c/0")
    with pytest.raises(StoreError, match="X/data/c/0 is damaged"):
        read_all(store)


def test_a_store_without_checksums_still_opens(stores: tuple[Path, Path]) -> None:
    """As those of earlier versions; rows that are appended make it no worse."""
    store, _ = stores
    root = json.loads((store / "zarr.json").read_text())
    header = root["attributes"]["nfs_dask"]
    del header["checks"], header["crc32c"]
    header["crc32c"] = f"{google_crc32c.value(json.dumps(header, sort_keys=True).encode()):08x}"
    (store / "zarr.json").write_text(json.dumps(root))
    (store / "nfs_dask/receipts/1.json").unlink()
    read_all(store)
    nfs.ingest(cells(0), store, labels="kind", append=True)
    read_all(store)
    assert nfs.open_dataset(store).n_rows == 2 * N_ROWS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that needs its vocabulary, beside another one of the same shape."""
    folder = tmp_path_factory.mktemp("models")
    for seed in (0, 1):
        labels = np.arange(N_ROWS) % 2
        nfs.ingest(texts(seed), folder / f"{seed}.zarr", labels=labels, tfidf=True, overwrite=True)
        nfs.SparseCentroid(k=20).fit(nfs.open_dataset(folder / f"{seed}.zarr")).save(folder / f"{seed}")
    return folder / "0"


def test_files_of_a_model_in_the_wrong_place_are_refused(model: Path, tmp_path: Path) -> None:
    copied = tmp_path / "model"
    shutil.copytree(model, copied)
    names = objects(copied)
    tried = 0
    for one, two in combinations(names, 2):
        mine, theirs = (copied / one).read_bytes(), (copied / two).read_bytes()
        if mine == theirs:
            continue
        (copied / one).write_bytes(theirs)
        (copied / two).write_bytes(mine)
        with pytest.raises(StoreError, match="damaged"):
            nfs.load_model(copied)
        (copied / one).write_bytes(mine)
        (copied / two).write_bytes(theirs)
        tried += 1
    assert tried > 20
    nfs.load_model(copied)


def test_files_of_another_model_are_refused(model: Path, tmp_path: Path) -> None:
    copied, other = tmp_path / "model", model.with_name("1")
    shutil.copytree(model, copied)
    (vocabulary,), (theirs,) = copied.glob("vocabulary-*"), other.glob("vocabulary-*")
    for path in sorted(theirs.rglob("*")):
        mine = vocabulary / path.relative_to(theirs)
        if path.is_file() and path.read_bytes() != (content := mine.read_bytes()):
            shutil.copy(path, mine)
            with pytest.raises(StoreError, match="damaged|another model|not the one"):
                nfs.load_model(copied)
            mine.write_bytes(content)
    shutil.rmtree(vocabulary)
    shutil.copytree(theirs, vocabulary)
    with pytest.raises(StoreError, match="vocabulary of another model"):
        nfs.load_model(copied)
