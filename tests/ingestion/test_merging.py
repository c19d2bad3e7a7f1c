"""Terms of segments merged by ranges, against Python's dictionaries; any cutting gives the same columns."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.given_vocabulary import write_fixed
from nfs_dask.ingestion.merging import choose_bounds, choose_cuts, merge_range
from nfs_dask.ingestion.ranges import sample_terms
from nfs_dask.ingestion.segments import read_manifest, write_segment
from nfs_dask.text.counting import hash_strings
from nfs_dask.text.ordering import order
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings
from tests.helpers.counting_by_hand import counted_by_hand, merge_segments, merge_tasks, write_segments

words = st.sampled_from(["", "a", "ab", "ab\0", "b", "ba", "é", "zebra", "aaaaaaaaaaaa", "aaaaaaaaaaab", "😀"])
documents = st.lists(st.lists(words, max_size=12), max_size=12)


def listed(strings):
    return [strings[i] for i in range(len(strings))]


def read_merged(folder, ranges, *keys):
    """Arrays of all ranges, one after another; the names first."""
    names, arrays = [], {key: [] for key in keys}
    for merged in ranges:
        file = ArrayFile.open(folder, merged.name)
        names += listed(Strings(file.read("offsets"), file.read("text")))
        for key in keys:
            arrays[key] += file.read(key).tolist()
    return names, *arrays.values()


def frequencies(rows, n_regions=1):
    """Occurrences and documents of each term, by its bytes."""
    cf, df = Counter(), Counter()
    for i in range(0, len(rows), n_regions):
        terms = [term.encode() for row in rows[i : i + n_regions] for term in row]
        cf.update(terms)
        df.update(set(terms))
    return cf, df


@given(rows=documents, data=st.data())
def test_names_and_frequencies_are_those_of_a_dictionary(tmp_path_factory, rows, data):
    folder = Folder(str(tmp_path_factory.mktemp("merged")))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    segments = write_segments(folder, rows, cuts)
    ranges = merge_segments(folder, segments, data.draw(st.sampled_from([40, 100, 1 << 20])))
    names, cf, df = read_merged(folder, ranges, "cf", "df")
    expected_cf, expected_df = frequencies(rows)
    assert names == sorted(expected_cf)
    assert dict(zip(names, cf, strict=True)) == expected_cf
    assert dict(zip(names, df, strict=True)) == expected_df
    assert sum(merged.n_distinct for merged in ranges) == len(expected_cf)
    assert sum(merged.cf for merged in ranges) == expected_cf.total()
    assert sum(merged.df for merged in ranges) == expected_df.total()
    assert sum(merged.names_nbytes for merged in ranges) == sum(map(len, names))


@given(rows=documents, target=st.sampled_from([40, 90, 1 << 20]))
def test_maps_lead_from_ids_to_ranks(tmp_path_factory, rows, target):
    folder = Folder(str(tmp_path_factory.mktemp("maps")))
    segments = write_segments(folder, rows, [len(rows) // 3, len(rows) // 2])
    ranges = merge_segments(folder, segments, target, fewest=2, with_df=True)
    names = read_merged(folder, ranges)[0]
    df = frequencies(rows)[1]
    for number, segment in enumerate(segments):
        file = ArrayFile.open(folder, segment.name)
        found, found_df, first = [], [], 0
        for merged in ranges:
            own = ArrayFile.open(folder, merged.name)
            start, stop = own.read("starts")[number : number + 2]
            found += [None if rank < 0 else names[first + rank] for rank in own.read("map", start, stop)]
            found_df += own.read("id_df", start, stop).tolist()
            first += merged.n_kept
        terms = listed(Strings(file.read("offsets"), file.read("text")))
        assert found == [term if df[term] >= 2 else None for term in terms]
        assert found_df == [df[term] for term in terms]


def test_document_frequencies_count_a_document_of_several_regions_once(tmp_path):
    rows = [["a", "a"], ["a", "b"], ["b"], []]
    folder = Folder(str(tmp_path))
    ranges = merge_segments(folder, write_segments(folder, rows, [1], n_regions=2))
    assert read_merged(folder, ranges, "cf", "df") == ([b"a", b"b"], [3, 2], [1, 2])


def test_a_binary_term_occurs_once_in_a_row(tmp_path):
    folder = Folder(str(tmp_path))
    segments = write_segments(folder, [["a", "a"], ["a", "b"]], [], TextSettings(binary=True))
    assert read_merged(folder, merge_segments(folder, segments), "cf") == ([b"a", b"b"], [2, 1])
    assert segments[0].largest == 1


def many_rows(n=300, seed=0):
    random = np.random.default_rng(seed)
    return [[f"w{k}" for k in random.zipf(1.5, 30) % 2000] for _ in range(n)]


def test_filters_keep_what_python_keeps(tmp_path):
    rows, folder = many_rows(), Folder(str(tmp_path))
    segments = write_segments(folder, rows, [100, 101, 250])
    ranges = merge_segments(folder, segments, 8000, fewest=3, most=150.5)
    df = frequencies(rows)[1]
    assert len(ranges) > 3
    assert read_merged(folder, ranges)[0] == sorted(name for name, n in df.items() if 3 <= n <= 150.5)
    assert sum(merged.n_rare for merged in ranges) == sum(n < 3 for n in df.values())
    assert sum(merged.n_frequent for merged in ranges) == sum(n > 150.5 for n in df.values()) > 0


@pytest.mark.parametrize("most", [1, 2, 7, 50, 333, 10**6])
@pytest.mark.parametrize("fewest", [1, 2])
def test_the_most_frequent_are_kept_and_ties_go_to_the_first(tmp_path, most, fewest):
    rows, folder = many_rows(), Folder(str(tmp_path))
    segments = write_segments(folder, rows, [120])
    looked = merge_segments(folder, segments, 8000, fewest=fewest, with_table=True)
    ranges = merge_segments(folder, segments, 8000, choose_cuts(looked, most), fewest=fewest)
    cf, df = frequencies(rows)
    allowed = [name for name in cf if df[name] >= fewest]
    expected = sorted(allowed, key=lambda name: (-cf[name], name))[:most]
    assert read_merged(folder, ranges)[0] == sorted(expected)
    assert sum(merged.n_cut for merged in ranges) == len(allowed) - len(expected)


def test_looking_writes_nothing(tmp_path):
    folder = Folder(str(tmp_path))
    segments = write_segments(folder, [["a"]], [])
    (task,) = merge_tasks(folder, segments, with_table=True)
    before = folder.names()
    merged = merge_range(type(task)(**{name: getattr(task, name) for name in task.__slots__} | {"name": None}))
    assert folder.names() == before
    assert merged.n_kept == 1


def test_merging_again_leaves_the_same_bytes(tmp_path):
    folder = Folder(str(tmp_path))
    segments = write_segments(folder, many_rows(), [100])
    first = [merged.name for merged in merge_segments(folder, segments, 8000)]
    before = [folder.read(name) for name in first]
    merge_segments(folder, segments, 8000)
    assert [folder.read(name) for name in first] == before


# Cutting into ranges.


def test_ranges_are_of_about_the_size_asked_for(tmp_path):
    folder = Folder(str(tmp_path))
    segments = write_segments(folder, [[f"{k:05d}" for k in range(i, 20_000, 7)] for i in range(7)], [2, 4])
    total = sum(segment.terms_nbytes for segment in segments)
    bounds = choose_bounds(segments, total // 5)
    assert bounds[0] == b"" and bounds == sorted(set(bounds)) and len(bounds) in (5, 6)
    sizes = []
    for low, high in pairwise([*bounds, b"\xff"]):
        sizes.append(sum(low <= b"%05d" % k < high for k in range(20_000)))
    assert max(sizes) < 1.5 * 20_000 / 5


def test_few_terms_are_one_range(tmp_path):
    segments = write_segments(Folder(str(tmp_path)), [["a", "b"], []], [1])
    assert choose_bounds(segments, 1 << 20) == [b""]
    assert choose_bounds([], 1 << 20) == [b""]


@given(st.lists(words, unique=True, max_size=11))
def test_samples_part_terms(names):
    terms = sorted(name.encode() for name in names)
    for sample in sample_terms(Strings.of(terms)):
        assert all((term < sample.bound) == (i < sample.position) for i, term in enumerate(terms))


def test_terms_that_hardly_differ_are_no_place_to_cut():
    terms = [b"x" * 1000 + b"%05d" % i for i in range(100)] + [b"y"] * 1
    assert {sample.bound for sample in sample_terms(Strings.of(terms))} <= {b"y"}


# A vocabulary that was given.


@pytest.mark.parametrize("target", [100, 1 << 20])
def test_a_given_vocabulary_is_kept_whole(tmp_path, target):
    rows, folder = [["b", "x", "a", "a"], ["c", "a"], ["zz", "y"]], Folder(str(tmp_path))
    segments = write_segments(folder, rows, [1, 2])
    given_names, columns = [b"a", b"c", b"d", b"zz"], np.array([2, 0, 3, 1])
    fixed = write_fixed(folder, "fixed", Strings.of(given_names), columns)
    ranges = merge_segments(folder, segments, target, extra=[fixed], fixed="fixed")
    names, cf, df, numbers = read_merged(folder, ranges, "cf", "df", "columns")
    assert (names, cf, df, numbers) == (given_names, [3, 1, 0, 1], [2, 1, 0, 1], [2, 0, 3, 1])
    assert (len(ranges) > 1) == (target == 100)
    assert sum(merged.n_distinct for merged in ranges) == 3
    assert not fixed.in_order and write_fixed(folder, "f", Strings.of(given_names), np.arange(4)).in_order


# Hashed columns.


@pytest.mark.parametrize("bits", [1, 6, 13, 40])
@pytest.mark.parametrize("target", [8000, 1 << 20])
def test_hashed_columns(tmp_path, bits, target):
    rows, folder = many_rows(), Folder(str(tmp_path))
    settings = TextSettings(hashed=bits)
    segments = write_segments(folder, rows, [100, 101], settings)
    ranges = merge_segments(folder, segments, target, hashed=True)
    cf = frequencies(rows)[0]
    of_name = {name: int(h) >> (64 - bits) for name, h in zip(cf, hash_strings(Strings.of(cf)), strict=True)}
    by_column = {}
    for name, column in of_name.items():
        by_column.setdefault(column, []).append(name)
    names, columns, sums, df, others = read_merged(folder, ranges, "columns", "cf", "df", "others")
    assert columns == sorted(by_column)
    assert names == [min(by_column[c], key=lambda name: (-cf[name], name)) for c in columns]
    assert sums == [sum(cf[name] for name in by_column[c]) for c in columns]
    assert others == [len(by_column[c]) - 1 for c in columns]
    present = Counter(c for row in rows for c in {of_name[term.encode()] for term in row})
    assert df == [present[c] for c in columns]
    assert sum(merged.n_distinct for merged in ranges) == len(cf)
    assert sum(merged.n_shared for merged in ranges) == sum(len(n) for n in by_column.values() if len(n) > 1)


# Segments.


def test_a_manifest_comes_back(tmp_path):
    folder = Folder(str(tmp_path))
    (segment,) = write_segments(
        folder, many_rows(), [], y=np.array(["é", "b", "c"] * 100), weights=np.ones(300), block_entries=500
    )
    assert read_manifest(folder, segment.name) == segment
    assert read_manifest(folder, "another") is None
    assert len(segment.cuts) > 5 and segment.block_entries <= 500
    assert segment.classes == ("b", "c", "é") and segment.weighted


def test_a_long_document_is_a_block_of_its_own(tmp_path):
    counted = order(counted_by_hand([["a"], [f"{k}" for k in range(100)], ["b"], []]))
    segment = write_segment(Folder(str(tmp_path)), "s", counted, TextSettings(), block_entries=10)
    assert segment.cuts == (0, 1, 2)
    assert (segment.block_entries, segment.block_documents) == (100, 2)


def test_a_damaged_segment_is_named(tmp_path):
    folder = Folder(str(tmp_path))
    segments = write_segments(folder, many_rows(), [100])
    path = tmp_path / segments[1].name
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"1\.terms is truncated, damaged"):
        merge_segments(folder, segments)
