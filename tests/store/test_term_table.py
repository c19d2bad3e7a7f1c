"""Looking up terms on disk gives what a dictionary would, and reads no more than it must."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import sealed
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store import stored_terms as terms_module
from nfs_dask.store import term_table as table_module
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.stored_terms import without_prefix
from nfs_dask.store.term_table import TermTable
from nfs_dask.store.writer import write_store
from nfs_dask.text.hashed_columns import hash_columns
from nfs_dask.text.strings import Strings
from tests.helpers.memory import NOISE, peak_nbytes
from tests.helpers.toys import SMALL
from tests.helpers.toytexts import WORDS, TextSource

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def stored(place, terms, regions=("",), **options):
    """A store of documents with these terms, and its source."""
    source = TextSource(terms, regions, n_rows=20, n_blocks=1, **options)
    write_store(source, place, layout=SMALL, text=source.text_facts())
    return source


def assert_finds(table, source, wanted):
    known = {term: column for column, term in enumerate(source.terms)}
    columns, frequencies = table.look_up(Strings.of(wanted))
    assert columns.dtype == frequencies.dtype == np.int64
    assert columns.tolist() == [known.get(term, -1) for term in wanted]
    assert frequencies.tolist() == [int(source.df[known[term]]) if term in known else 0 for term in wanted]


@given(
    st.lists(TEXT, min_size=1, max_size=60, unique=True),
    st.lists(TEXT, max_size=20),
    st.booleans(),
    st.sampled_from([("",), ("a", "b")]),
    st.integers(0, 2),
)
def test_terms_are_found_as_in_a_dictionary(tmp_path_factory, terms, others, in_order, regions, held):
    place = tmp_path_factory.mktemp("tables")
    terms = sorted(terms, key=str.encode) if in_order else terms
    source = stored(place / "s", terms, regions, names_sorted=in_order)
    wanted = [*terms[::-1], *others, *terms[:3]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "HELD_NBYTES", [0, 300, 1 << 20][held])
        patch.setattr(table_module, "PIECE", 16)
        patch.setattr(terms_module, "PIECE", 16)
        patch.setattr(terms_module, "_CHUNK", 4)
        patch.setattr(terms_module, "_SHARD", 32)
        table = TermTable.open(place / "s")
        assert_finds(table, source, wanted)
        assert_finds(pickle.loads(pickle.dumps(table)), source, wanted)
        copied = table.copy_to(Folder.of(place / "copy"))
        for copy in (copied, TermTable.open(place / "copy"), copied.copy_to(Folder.of(place / "again"))):
            assert (copy.n_terms, copy.n_documents) == (len(terms), 20)
            assert_finds(copy, source, wanted)
            np.testing.assert_array_equal(copy.frequencies(np.arange(len(terms))[::-1]), source.df[::-1])
    assert_finds(table, source, [])


@given(st.lists(TEXT, max_size=9), TEXT)
def test_prefixes_come_and_go(strings, prefix):
    shifted = Strings.of(["x", *strings]).part(1, len(strings) + 1)
    prefixed = shifted.after(prefix.encode())
    assert prefixed.to_list() == [prefix + string for string in strings]
    assert without_prefix(prefixed, len(prefix.encode())).to_list() == strings


def test_only_chunks_that_can_hold_a_term_are_read(tmp_path, monkeypatch):
    terms = [f"w{i:04}" for i in range(1000)]
    source = stored(tmp_path / "s", terms)
    monkeypatch.setattr(table_module, "HELD_NBYTES", 0)
    table = TermTable.open(tmp_path / "s")
    assert_finds(table, source, ["w0000", "nothing"])  # the first term of each chunk is known from now on
    read = []

    def watched(self, start, stop, original=ShardReader.read):
        read.append((self.numbers.name, start, stop))
        return original(self, start, stop)

    monkeypatch.setattr(ShardReader, "read", watched)
    assert_finds(pickle.loads(pickle.dumps(table)), source, ["w0801", "w0100", "w0803", "w9"])
    offsets = [(start, stop) for name, start, stop in read if name == "nfs_dask/names/offsets"]
    assert offsets == [(96, 105), (800, 809), (992, 1001)]
    assert max(stop - start for name, start, stop in read if name == "nfs_dask/frequencies") <= SMALL.row_chunk


def test_many_terms_are_read_some_at_a_time(tmp_path, monkeypatch):
    terms = [f"w{i:04}" for i in range(1000)]
    source = stored(tmp_path / "s", terms)
    for module in (table_module, terms_module):
        monkeypatch.setattr(module, "PIECE", 64)
    monkeypatch.setattr(terms_module, "_CHUNK", 32)
    monkeypatch.setattr(table_module, "HELD_NBYTES", 0)
    table = TermTable.open(tmp_path / "s")
    most = 0

    def watched(self, start, stop, original=ShardReader.read):
        nonlocal most
        if self.numbers.itemsize == 8:
            most = max(most, stop - start)
        return original(self, start, stop)

    monkeypatch.setattr(ShardReader, "read", watched)
    assert_finds(table, source, terms)
    assert_finds(table.copy_to(Folder.of(tmp_path / "copy")), source, terms)
    assert most <= 65


def test_a_copy_is_a_group_that_zarr_reads(tmp_path):
    source = stored(tmp_path / "s", WORDS[::-1], ("a", "b"), names_sorted=False)
    TermTable.open(tmp_path / "s").copy_to(Folder.of(tmp_path / "copy"))
    group = zarr.open_group(tmp_path / "copy", mode="r")
    offsets, content = group["names/offsets"][:], group["names/bytes"][:].tobytes()
    names = [content[a:b].decode() for a, b in zip(offsets, offsets[1:], strict=False)]
    assert names == WORDS
    assert [source.terms[column] for column in group["columns"][:]] == WORDS
    np.testing.assert_array_equal(group["frequencies"][:], source.df)


def test_columns_that_are_hashes_have_frequencies(tmp_path):
    source = TextSource([f"#{i}" for i in range(64)], n_rows=20, names_sorted=False)
    write_store(source, tmp_path / "s", layout=SMALL, text=source.text_facts(hashed=6))
    table = ZarrSource(tmp_path / "s").table()
    assert not (tmp_path / "s/nfs_dask/sorted").exists()
    for one in (table, table.copy_to(Folder.of(tmp_path / "copy")), TermTable.open(tmp_path / "copy")):
        np.testing.assert_array_equal(one.frequencies(np.array([63, 0, 7, 7])), source.df[[63, 0, 7, 7]])


def test_terms_that_are_hashed_have_the_columns_of_their_hashes(tmp_path):
    source = TextSource([f"#{i}" for i in range(64)], n_rows=20, names_sorted=False)
    write_store(source, tmp_path / "s", layout=SMALL, text=source.text_facts(hashed=6))
    wanted = Strings.of(["some", "words", "日本", "some"])
    columns, frequencies = TermTable.open(tmp_path / "s").look_up(wanted)
    np.testing.assert_array_equal(columns, hash_columns(wanted, 6))
    np.testing.assert_array_equal(frequencies, source.df[columns])


def test_a_store_without_a_vocabulary_says_so(tmp_path):
    source = TextSource(n_rows=20)
    write_store(source, tmp_path / "s", layout=SMALL)
    with pytest.raises(StoreError, match="no vocabulary of texts"):
        TermTable.open(tmp_path / "s")
    with pytest.raises(StoreError, match="is not a store"):
        TermTable.open(tmp_path / "nowhere")


@pytest.fixture
def copy(tmp_path):
    stored(tmp_path / "s", [*WORDS[:0:-1], "more"], names_sorted=False)  # without the empty one: the first has bytes
    TermTable.open(tmp_path / "s").copy_to(Folder.of(tmp_path / "copy"))
    return tmp_path / "copy"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "recipe"},
        {"format": 2},
        {"n_terms": 2**70},
        {"n_terms": -1},
        {"n_terms": "many"},
        {"n_documents": None},
        {"ordered": 1},
        {"bits": 3},
        {"bits": 10**9},
        {"bits": 2.5},
        {"names_nbytes": 1.5},
    ],
)
def test_hostile_copies_are_refused(copy, change):
    manifest = json.loads((copy / "terms.json").read_text())
    (copy / "terms.json").write_bytes(sealed({**manifest, **change}))
    with pytest.raises(StoreError):
        TermTable.open(copy)


@pytest.mark.parametrize("change", [{"n_terms": 2**40}, {"names_nbytes": 3}, {"n_terms": 41}, {"n_documents": 0}])
def test_copies_of_another_size_than_they_say_are_refused_when_read(copy, change):
    manifest = json.loads((copy / "terms.json").read_text())
    (copy / "terms.json").write_bytes(sealed({**manifest, **change}))
    with pytest.raises(StoreError):
        TermTable.open(copy).look_up(Strings.of(WORDS))


@pytest.mark.parametrize("name", ["names/offsets", "names/bytes", "firsts/offsets", "firsts/bytes", "columns"])
@pytest.mark.parametrize("harm", ["flip", "remove"])
def test_harm_to_a_copy_is_named(copy, name, harm):
    place = copy / name / "c/0"
    content = bytearray(place.read_bytes())
    content[len(content) // 3] ^= 1
    place.unlink()
    if harm == "flip":
        place.write_bytes(content)
    with pytest.raises(StoreError, match=f"{name}/c/0 is {'damaged' if harm == 'flip' else 'missing'}"):
        TermTable.open(copy).look_up(Strings.of(WORDS))


@pytest.mark.parametrize(("name", "value"), [("columns", 40), ("columns", -2), ("frequencies", -1)])
def test_numbers_that_cannot_be_are_refused(copy, name, value):
    array = zarr.open_group(copy, mode="r+")[name]
    array[3] = value
    with pytest.raises(StoreError, match="a chunk holds other values"):
        TermTable.open(copy).look_up(Strings.of(WORDS))
    manifest = json.loads((copy / "terms.json").read_text())  # of a copy from before there were checksums
    (copy / "terms.json").write_text(json.dumps({k: v for k, v in manifest.items() if k not in ("checks", "crc32c")}))
    with pytest.raises(StoreError, match=f"{name} is damaged: a value is not from 0"):
        TermTable.open(copy).look_up(Strings.of(WORDS))


def test_memory_of_a_look_up_does_not_grow_with_the_vocabulary(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "HELD_NBYTES", 0)
    for module in (table_module, terms_module):
        monkeypatch.setattr(module, "PIECE", 1 << 12)
    monkeypatch.setattr(terms_module, "_CHUNK", 1 << 10)
    peaks = []
    for i, n in enumerate((200_000, 800_000)):  # several shards of names each
        names = np.char.mod("w%07d", np.arange(n)).astype("S8")
        text = np.frombuffer(names.tobytes(), np.uint8)
        source = TextSource(["w"], n_rows=20)
        source.X, source.df, source.terms = sparse.csr_matrix((20, n)), np.zeros(n, np.int64), range(n)
        source._facts = replace(source.facts, n_features=n)
        source.strings = lambda start, stop, text=text: Strings(np.arange(start, stop + 1) * 8, text)
        write_store(source, tmp_path / f"{i}", layout=SMALL.__class__(row_chunk=1 << 10), text=source.text_facts())
        wanted = Strings.of(names[:: n // 1000].tolist())

        def looked_up(i=i, n=n, wanted=wanted):
            shutil.rmtree(tmp_path / f"copy{i}", ignore_errors=True)
            copy = TermTable.open(tmp_path / f"{i}").copy_to(Folder.of(tmp_path / f"copy{i}"))
            assert (copy.look_up(wanted)[0] == np.arange(0, n, n // 1000)).all()

        peaks.append(peak_nbytes(looked_up))
    assert peaks[1] < 1.3 * peaks[0] + NOISE
