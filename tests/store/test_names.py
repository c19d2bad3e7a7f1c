from __future__ import annotations

import anndata
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store import header as header_module
from nfs_dask.store.header import read_header
from nfs_dask.store.names import read_names
from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, ToySource, example

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(st.lists(TEXT, min_size=1, max_size=40, unique=True), st.data())
def test_any_names_are_read_in_any_order(tmp_path_factory, names, data):
    place = tmp_path_factory.mktemp("names") / "s"
    write_store(ToySource(sparse.csr_matrix((2, len(names))), names=names, n_blocks=1), place, layout=SMALL)
    columns = np.array(data.draw(st.lists(st.integers(0, len(names) - 1), max_size=10)), np.int64)
    folder = Folder.of(place)
    assert read_names(folder, read_header(folder), columns) == [names[c] for c in columns]
    assert ZarrSource(place).names(columns) == [names[c] for c in columns]


def test_few_names_are_read_without_the_rest(tmp_path):
    names = [f"w{i:04}" for i in range(2000)]
    write_store(ToySource(sparse.csr_matrix((2, 2000)), n_blocks=1), tmp_path / "s", names=iter(names), layout=SMALL)
    for shard in (tmp_path / "s/nfs_dask/names/bytes/c").iterdir():
        if shard.name != "0":
            shard.unlink()
    source = ZarrSource(tmp_path / "s")
    assert source.names(np.array([7, 3])) == ["w0007", "w0003"]
    with pytest.raises(StoreError, match=r"nfs_dask/names/bytes/c/\d+ is missing"):
        source.names(np.array([7, 1900]))


def test_names_may_come_in_lists(tmp_path):
    names = [f"w{i}" for i in range(40)]
    write_store(example(), tmp_path / "s", names=[names[:7], names[7:33], names[33:]], layout=SMALL)
    assert ZarrSource(tmp_path / "s").names(np.arange(40)) == names


def test_beyond_some_millions_the_index_holds_numbers_and_we_hold_the_names(tmp_path, monkeypatch):
    monkeypatch.setattr(header_module, "INDEX_NAMES", 39)
    names = [f"w{i}" for i in range(40)]
    write_store(example(names=names), tmp_path / "s", layout=SMALL)
    assert ZarrSource(tmp_path / "s").names(np.array([39, 0])) == ["w39", "w0"]
    with pytest.warns(UserWarning, match="Transforming to str index"):
        opened = anndata.read_zarr(tmp_path / "s")
    assert opened.var_names.tolist() == [str(i) for i in range(40)]


@pytest.mark.parametrize("count", [39, 41])
def test_one_name_for_each_column(tmp_path, count):
    with pytest.raises(InputError, match="names for 40 columns; give one name for each"):
        write_store(example(), tmp_path / "s", names=[f"w{i}" for i in range(count)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("bad", "message"), [("w3", "columns 3 and 7 are both named 'w3'"), ("\ud800", "not valid text")]
)
def test_names_that_cannot_be_kept_are_refused(tmp_path, bad, message):
    names = [f"w{i}" if i != 7 else bad for i in range(40)]
    with pytest.raises(InputError, match=message):
        write_store(example(), tmp_path / "s", names=names)


def test_a_store_without_names_says_so(tmp_path):
    write_store(example(), tmp_path / "s")
    assert ZarrSource(tmp_path / "s").names(np.arange(3)) is None
    assert anndata.read_zarr(tmp_path / "s").var_names.tolist() == [str(i) for i in range(40)]
    with pytest.raises(InputError, match="names were given, but .* has none"):
        write_store(example(), tmp_path / "s", names=[f"w{i}" for i in range(40)], append=True)


def test_a_column_outside_is_refused(tmp_path):
    write_store(example(), tmp_path / "s")
    with pytest.raises(InputError, match="column 40 was asked for; the data have 40 columns"):
        ZarrSource(tmp_path / "s").names(np.array([1, 40]))


@pytest.mark.parametrize("names", [range(40), [None] * 40, np.arange(40), [[1, 2], [3]], [b"w"] * 40])
def test_names_that_are_not_text_are_refused(tmp_path, names):
    with pytest.raises(InputError, match="a feature is named .*, which is not text; give strings"):
        write_store(example(), tmp_path / "s", names=names, layout=SMALL)
    assert list(tmp_path.iterdir()) == []
