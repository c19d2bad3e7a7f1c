"""What a store keeps of the texts its rows were made of."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial

import anndata
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numcodecs.vlen import VLenUTF8
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import with_seal
from nfs_dask.sources.source import Source
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store import header as header_module
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.receipts import verify
from nfs_dask.store.string_arrays import encoded
from nfs_dask.store.text_facts import TextFacts, joined_reports
from nfs_dask.store.writer import write_store
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from tests.helpers.memory import NOISE, peak_nbytes
from tests.helpers.toys import SMALL, assert_same_matrix, contents, example
from tests.helpers.toytexts import WORDS, TextSource

REGIONS = ("subject", "the body")


def files_of(location):
    return {p.relative_to(location).as_posix(): p.read_bytes() for p in location.rglob("*") if p.is_file()}


def header_of(location):
    return read_header(Folder.of(location))


def write(place, source, **options):
    options = {"layout": SMALL, "text": source.text_facts(), **options}
    write_store(source, place, **options)


# Names


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=12), st.integers(0, 3))
def test_strings_are_encoded_as_zarr_does(strings, more):
    padded = np.full(len(strings) + more, "", dtype=object)
    padded[: len(strings)] = strings
    shifted = Strings.of(["before", *strings]).part(1, len(strings) + 1)
    assert encoded(shifted, len(padded)).tobytes() == bytes(VLenUTF8().encode(padded))


def test_names_that_come_as_bytes_are_stored_as_given_ones_are(tmp_path):
    source = TextSource()
    write(tmp_path / "bytes", source, text=None)
    write_store(example(), tmp_path / "other", layout=SMALL)
    source.__class__ = type("Plain", (example().__class__,), {})
    source.given_names = None
    write_store(source, tmp_path / "given", names=source.column_names, layout=SMALL)
    assert files_of(tmp_path / "bytes") == files_of(tmp_path / "given")
    assert anndata.read_zarr(tmp_path / "bytes").var_names.tolist() == WORDS


def test_beyond_some_millions_the_index_holds_no_names(tmp_path, monkeypatch):
    monkeypatch.setattr(header_module, "INDEX_NAMES", 39)
    write(tmp_path / "s", TextSource())
    assert ZarrSource(tmp_path / "s").names(np.arange(40)) == WORDS
    with pytest.warns(UserWarning, match="Transforming to str index"):
        assert anndata.read_zarr(tmp_path / "s").var_names.tolist() == [str(i) for i in range(40)]
    verify(tmp_path / "s")


@pytest.mark.parametrize("count", [39, 41])
def test_as_many_names_as_columns(tmp_path, count):
    source = TextSource()
    source.strings = lambda start, stop: Strings.of(["w"] * (stop - start + (count - 40) * (stop == 40)))
    with pytest.raises(InputError, match="names for 40 columns"):
        write(tmp_path / "s", source)


def test_memory_for_names_is_that_of_a_chunk(tmp_path):
    layout = Layout(chunk=4096, shard=65536, row_chunk=4096, row_shard=16384, block=16384)

    def written(n):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        source = TextSource(["w"])
        source.X, source._facts = sparse.csr_matrix((200, n)), replace(source.facts, n_features=n)
        source.strings = lambda start, stop: Strings(
            np.arange(stop - start + 1) * 8, np.arange(start, stop).view(np.uint8) % 128
        )
        write_store(source, tmp_path / "s", layout=layout)

    few, many = (peak_nbytes(partial(written, n)) for n in (20_000, 200_000))
    assert many < 1.3 * few + NOISE  # all names are 3.2 MB


# Facts


def test_facts_come_back(tmp_path):
    source = TextSource(codes=np.zeros(200, int), classes=["one"])
    facts = source.text_facts({"documents_seen": 210, "left_out": {"empty": 10}}, ngrams=(1, 2), stop_words=("a", "b"))
    write(tmp_path / "s", source, text=facts)
    assert ZarrSource(tmp_path / "s").text == replace(facts, frequencies=True)
    table = ZarrSource(tmp_path / "s").table()
    np.testing.assert_array_equal(table.frequencies(np.arange(40)), source.df)
    verify(tmp_path / "s")


def test_facts_are_no_part_of_the_fingerprint(tmp_path):
    source = TextSource(regions=REGIONS)
    write(tmp_path / "plain", source, text=None)
    write(tmp_path / "text", source)
    assert header_of(tmp_path / "plain").fingerprint == header_of(tmp_path / "text").fingerprint
    assert ZarrSource(tmp_path / "plain").text is None
    assert ZarrSource(tmp_path / "plain").table() is None
    assert ZarrSource(tmp_path / "plain").lengths(0, 0, 200) is None
    assert "text" not in json.loads((tmp_path / "plain/zarr.json").read_text())["attributes"]["nfs_dask"]


def test_a_source_may_know_no_frequencies_unless_it_is_weighed(tmp_path):
    source = TextSource(terms=[f"#{i}" for i in range(16)], names_sorted=False)
    source.__class__ = type("Uncounted", (TextSource,), {"frequencies": Source.frequencies})
    write(tmp_path / "s", source, text=source.text_facts(hashed=4))
    assert ZarrSource(tmp_path / "s").table() is None
    with pytest.raises(InputError, match="tf-idf needs document frequencies"):
        write(tmp_path / "t", source, text=source.text_facts(tfidf=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_terms": 39}, "39 terms in 1 regions are 39"),
        ({"n_terms": 40.0}, "whole numbers"),
        ({"regions": ("a", "a")}, "same name"),
        ({"regions": ("a", "")}, "named ''"),
        ({"regions": ("a/b", "c")}, "named 'a/b'"),
        ({"regions": ("a:b", "c")}, "named 'a:b'"),
        ({"regions": ("a\x00", "c")}, "named"),
        ({"regions": ()}, "one name for each region"),
        ({"settings": TextSettings(hashed=5)}, "40 columns for hashes of 5 bits"),
        ({"settings": TextSettings(ngrams=(2, 1))}, "ngrams"),
        ({"report": []}, "report"),
    ],
)
def test_facts_that_cannot_be_are_refused(tmp_path, change, message):
    source = TextSource()
    with pytest.raises(InputError, match=message):
        write(tmp_path / "s", source, text=replace(source.text_facts(), **change))
    assert list(tmp_path.iterdir()) == []


def edited(place, change):
    root = json.loads((place / "zarr.json").read_text())
    change(root["attributes"]["nfs_dask"])
    root["attributes"]["nfs_dask"] = with_seal(root["attributes"]["nfs_dask"])
    (place / "zarr.json").write_text(json.dumps(root))


HOSTILE = {
    "a list": lambda h: h.update(text=[1]),
    "words": lambda h: h.update(text="text"),
    "no settings": lambda h: h["text"].pop("settings"),
    "settings of no kind": lambda h: h["text"].update(settings=7),
    "a pattern that never ends": lambda h: h["text"]["settings"].update(token_pattern="(?:" * 50_000),
    "many terms": lambda h: h["text"].update(n_terms=2**70),
    "other terms": lambda h: h["text"].update(n_terms=41),
    "half a document": lambda h: h["text"].update(n_documents=0.5),
    "a region outside": lambda h: h["text"].update(regions=["../../x", "y"]),
    "regions that are numbers": lambda h: h["text"].update(regions=[1, 2]),
    "as many bytes": lambda h: h["text"].update(sorted_nbytes=-1),
    "maybe": lambda h: h["text"].update(frequencies="maybe"),
    "a report of no kind": lambda h: h["text"].update(report="fine"),
    "a label named like a length": lambda h: h.update(label="length_subject", class_type="int", classes=[1]),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_facts_are_refused(tmp_path, attack):
    write(tmp_path / "s", TextSource(WORDS[:20], REGIONS))
    edited(tmp_path / "s", HOSTILE[attack])
    with pytest.raises(StoreError):
        ZarrSource(tmp_path / "s")


def test_a_store_from_before_there_were_facts_is_read_and_appended_to(tmp_path):
    source = example(names=[f"w{i}" for i in range(40)])
    write_store(source.part(0, 117), tmp_path / "s", layout=SMALL)
    edited(tmp_path / "s", lambda h: h.pop("text", None))
    assert ZarrSource(tmp_path / "s").text is None
    write_store(source.part(117, 200), tmp_path / "s", append=True)
    assert_same_matrix(contents(tmp_path / "s")[0], source.X)
    with pytest.raises(InputError, match="was not made of texts"):
        write_store(source, tmp_path / "s", append=True, text=TextFacts(TextSettings(), 200, 40))


@pytest.mark.parametrize("name", ["frequencies", "sorted/offsets", "sorted/bytes", "sorted/columns"])
def test_harm_to_what_is_known_of_terms_is_found(tmp_path, name):
    write(tmp_path / "s", TextSource(WORDS[::-1], names_sorted=False))
    verify(tmp_path / "s")
    place = tmp_path / f"s/nfs_dask/{name}/c/0"
    content = bytearray(place.read_bytes())
    content[len(content) // 3] ^= 1
    place.write_bytes(content)
    with pytest.raises(StoreError, match=f"{name}/c/0 is damaged"):
        verify(tmp_path / "s")


# Regions


@pytest.mark.parametrize("runs", [1, 3])
def test_anndata_reads_the_lengths_of_regions(tmp_path, runs):
    source = TextSource(WORDS[:20], REGIONS, codes=np.arange(200) % 2, classes=["a", "b"], weights=np.arange(200))
    write(tmp_path / "s", source, runs=runs)
    obs = anndata.read_zarr(tmp_path / "s").obs
    assert obs.columns.tolist() == ["label", "weight", "length_subject", "length_the body"]
    read = ZarrSource(tmp_path / "s")
    for region, name in enumerate(REGIONS):
        assert obs[f"length_{name}"].dtype == np.int64
        np.testing.assert_array_equal(obs[f"length_{name}"], source.lengths(region))
        np.testing.assert_array_equal(read.lengths(region, 31, 97), source.lengths(region)[31:97])
    assert read.names(np.array([0, 20, 25])) == ["subject:", "the body:", f"the body:{WORDS[5]}"]
    verify(tmp_path / "s")


def test_lengths_are_kept_up_by_an_append(tmp_path):
    source = TextSource(WORDS[:20], REGIONS)
    write(tmp_path / "whole", source)
    for first, last in ((0, 37), (37, 64), (64, 200)):
        text = source.text_facts() if not first else None
        write(tmp_path / "parts", source.part(first, last), append=first > 0, text=text)
    whole, parts = header_of(tmp_path / "whole"), header_of(tmp_path / "parts")
    assert parts == replace(whole, generation=3)
    for region in range(2):
        np.testing.assert_array_equal(ZarrSource(tmp_path / "parts").lengths(region, 0, 200), source.lengths(region))
    verify(tmp_path / "parts")


def test_one_region_and_weights_have_no_lengths(tmp_path):
    write(tmp_path / "one", TextSource())
    weighed = TextSource(WORDS[:20], REGIONS)
    weighed.X = weighed.X * 0.5
    write(tmp_path / "weights", weighed, text=weighed.text_facts(tfidf=True))
    for name in ("one", "weights"):
        assert ZarrSource(tmp_path / name).lengths(0, 0, 200) is None
        assert not list((tmp_path / name / "obs").glob("length*"))
    with pytest.raises(InputError, match="not whole numbers"):
        write(tmp_path / "neither", weighed)


def test_a_label_column_cannot_have_the_name_of_a_length(tmp_path):
    source = TextSource(WORDS[:20], REGIONS, codes=np.zeros(200, int), classes=["a"])
    with pytest.raises(InputError, match="label column 'length_subject' has the name of another"):
        write(tmp_path / "s", source, label_name="length_subject")
    assert list(tmp_path.iterdir()) == []


# Append


def test_appending_keeps_the_frequencies_of_the_first_ingest(tmp_path):
    source, more = TextSource(), TextSource(seed=1, n_rows=50)
    write(tmp_path / "s", source, text=source.text_facts({"seen": 200, "kept": 40, "problems": [1]}))
    more.__class__ = type("Uncounted", (TextSource,), {"frequencies": Source.frequencies})
    write(tmp_path / "s", more, append=True, text=more.text_facts({"seen": 53, "problems": [2], "new": True}))
    read = ZarrSource(tmp_path / "s")
    assert (read.n_rows, read.text.n_documents) == (250, 200)
    assert read.text.report == {"seen": 253, "kept": 40, "problems": [1, 2], "new": True}
    np.testing.assert_array_equal(read.table().frequencies(np.arange(40)), source.df)
    verify(tmp_path / "s")


def test_reports_add_up():
    old = {"seen": 5, "left": {"empty": 1, "label": 2}, "first": list(range(15)), "format": "a", "done": True, "x": 0}
    new = {"seen": 6, "left": {"empty": 2, "broken": 1}, "first": list(range(9)), "format": "b", "done": True}
    assert joined_reports(old, new) == {
        "seen": 11,
        "left": {"empty": 3, "label": 2, "broken": 1},
        "first": [*range(15), *range(5)],
        "format": "b",
        "done": True,
        "x": 0,
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"lowercase": False}, "lowercase=True, those to append with False"), ({"ngrams": (1, 2)}, r"ngrams=\(1, 1\)")],
)
def test_texts_read_otherwise_are_not_appended(tmp_path, settings, message):
    source = TextSource()
    write(tmp_path / "s", source)
    before = files_of(tmp_path / "s")
    with pytest.raises(InputError, match=message):
        write(tmp_path / "s", source, append=True, text=source.text_facts(**settings))
    assert files_of(tmp_path / "s") == before


def test_another_vocabulary_is_not_appended(tmp_path):
    write(tmp_path / "s", TextSource())
    other = TextSource([*WORDS[:7], "w\x00!", *WORDS[8:]])
    with pytest.raises(InputError, match=r"column 7 is named .* and 'w\\x00!' in the rows to append"):
        write(tmp_path / "s", other, append=True)


def test_facts_behind_a_url(s3):
    source = TextSource(WORDS[:20][::-1], REGIONS, names_sorted=False)
    write(f"{s3}/s", source.part(0, 117), text=source.text_facts())
    write(f"{s3}/s", source.part(117, 200), append=True, text=source.text_facts())
    read = ZarrSource(f"{s3}/s")
    np.testing.assert_array_equal(read.lengths(1, 0, 200), source.lengths(1))
    columns, frequencies = read.table().look_up(Strings.of(["ab", "no", "日本"]))
    assert columns.tolist() == [source.terms.index("ab"), -1, -1]
    assert frequencies[0] == source.df[columns[0]]
    verify(f"{s3}/s")
