"""Spooling entries and putting panels together again changes no number; damaged files are named."""

from __future__ import annotations

import contextlib
import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays import tiles
from nfs_dask.arrays.block import Block, check_structure, empty_block, integers_as_integers
from nfs_dask.arrays.tiles import Tiling, packs
from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import MAGIC, TAIL
from nfs_dask.files.folder import Folder
from nfs_dask.files.spool import OpenedFiles, SpooledPiece, SpoolFile, SpoolWriter, read_pieces
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import assert_same, fold
from tests.helpers.grids import each_once
from tests.helpers.strategies import labelled_csr

FACTS = {"coverage": [[0, 1]], "totals": {}, "mended": 0}


def write(folder: Folder, name: str, tiling: Tiling, blocks: list[Block], facts: Any = FACTS) -> SpoolFile:
    with folder.create(name) as file:
        writer = SpoolWriter(file, name, tiling)
        for block in blocks:
            writer.add(block)
        writer.close(facts)
    return SpoolFile.open(folder, name)


def spooled(
    folder: Folder, tiling: Tiling, files: list[list[Block]], cuts: list[int], statistic: ClassCounts, most: int = 10**9
) -> State:
    """The arrays of all panels side by side, folded from spool files as a task does it."""
    opened = [write(folder, f"file-{i}", tiling, blocks) for i, blocks in enumerate(files)]
    panels: list[dict[str, Any]] = []
    for first, last in itertools.pairwise(cuts):
        arrays: dict[str, Any] = {}
        group: list[SpooledPiece] = []
        for piece in itertools.chain.from_iterable(file.pieces(tiling, first, last) for file in opened):
            if group and (piece.family != group[0].family or len(group) >= most):
                statistic.update_tiles(arrays, read_pieces(group, tiling, first, last))
                group = []
            group.append(piece)
        if group:
            statistic.update_tiles(arrays, read_pieces(group, tiling, first, last))
        else:
            statistic.update_arrays(arrays, empty_block(last - first))
        panels.append({name: a if a.dtype.kind == "f" else a.astype(np.int64) for name, a in arrays.items()})
    names = sorted({name for panel in panels for name in panel})
    whole = {}
    for name in names:
        dtype = next(panel[name].dtype for panel in panels if name in panel)
        zeros = [np.zeros((statistic.n_classes, b - a), dtype) for a, b in itertools.pairwise(cuts)]
        whole[name] = np.concatenate([panel.get(name, zeros[i]) for i, panel in enumerate(panels)], axis=1)
    return State(whole, {})


def direct(blocks: list[Block], statistic: ClassCounts) -> State:
    return State(fold(statistic, blocks).arrays, {})


@st.composite
def cases(draw: Any) -> Any:
    """Some blocks of one width in several files, a tiling, and cuts of the columns that lie on tiles."""
    n_classes, n_features = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    weighting = draw(st.sampled_from([None, "int64", "float64"]))
    blocks = []
    for _ in range(draw(st.integers(1, 5))):
        matrix, codes = draw(labelled_csr(max_classes=n_classes, max_columns=n_features))
        weights = None
        if weighting is not None:
            amounts = st.integers(0, 9) if weighting == "int64" else st.sampled_from([0.0, 0.1, 1 / 3, 2.0])
            weights = np.array(draw(st.lists(amounts, min_size=len(codes), max_size=len(codes))), weighting)
        parts = (matrix.indptr.astype(np.int64), matrix.indices, matrix.data, codes.astype(np.int32))
        blocks.append(integers_as_integers(Block(*parts, n_features, weights)))
    files = draw(st.integers(1, len(blocks)))
    shift = draw(st.integers(0, 18))
    edges = list(range(0, n_features, 1 << shift))[1:]
    cuts = [0, *sorted(draw(st.sets(st.sampled_from(edges)))), n_features] if edges else [0, n_features]
    return blocks, np.array_split(np.arange(len(blocks)), files), Tiling(n_features, n_classes, shift), cuts


@given(
    case=cases(), most=st.sampled_from([1, 2, 10**9]), gathered=st.sampled_from([1, 5, 10**9]), documents=st.booleans()
)
def test_spooling_is_counting(tmp_path_factory: Any, case: Any, most: int, gathered: int, documents: bool) -> None:
    """To the bit, real sums too: the entries of a column and class keep the order of the documents."""
    blocks, groups, tiling, cuts = case
    statistic = ClassCounts(tiling.n_classes, True, documents)
    folder = Folder(str(tmp_path_factory.mktemp("spool")))
    files = [[blocks[i] for i in group] for group in groups]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "GATHERED", gathered)
        got = spooled(folder, tiling, files, cuts, statistic, most)
    assert_same(got, direct(blocks, statistic), exact=True)


def random_block(n_rows: int, n_features: int, n_classes: int, dtype: str, seed: int = 0, **options: Any) -> Block:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, min(30, n_features) + 1, n_rows)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.concatenate([np.sort(rng.choice(n_features, n, replace=False)) for n in lengths])
    data = rng.random(len(indices)) if dtype.startswith("float") else rng.integers(0, 200, len(indices))
    codes = rng.integers(0, n_classes, n_rows).astype(np.int32)
    return Block(indptr, indices.astype(np.int32), data.astype(dtype), codes, n_features, **options)


@pytest.mark.parametrize(
    ("shift", "dtype"), each_once([0, 5, 16, 17, 18], ["uint8", "uint32", "int64", "float32", "float64"])
)
def test_any_width_of_tiles_and_panels_gives_the_same_bits(tmp_path: Path, dtype: str, shift: int) -> None:
    n_features = 600 if shift < 16 else 5 * (1 << shift) + 77
    tiling = Tiling(n_features, 4, shift)
    rng = np.random.default_rng(1)
    blocks = [
        random_block(60, n_features, 4, dtype, seed, weights=rng.random(60) if seed % 2 else np.ones(60))
        for seed in range(4)
    ]
    statistic = ClassCounts(4, with_documents=True)
    want = direct(blocks, statistic)
    tile = 1 << shift
    for cuts in ([0, n_features], [0, tile, 3 * tile, n_features], [*range(0, n_features, tile), n_features][:40]):
        ends = [*cuts[:-1], n_features]
        folder = Folder(str(tmp_path / f"{len(cuts)}"))
        assert_same(spooled(folder, tiling, [blocks[:1], blocks[1:]], ends, statistic), want, exact=True)
    file = SpoolFile.open(folder, "file-0").file
    packed = packs(np.dtype(dtype), shift)
    assert file.dtype("0.columns").str == ("<u4" if packed or shift > 16 else "<u2")
    assert ("0.values" not in file) == packed
    assert packed or file.dtype("0.values") == dtype  # not widened on the way to the disk


def test_whole_and_real_blocks_in_turn(tmp_path: Path) -> None:
    """Whole numbers stay exact beside real ones, and each kind adds to its own array."""
    types = ["uint8", "float64", "int64", "float32", "uint32", "uint8", "float64"]
    blocks = [random_block(20, 50, 2, dtype, seed) for seed, dtype in enumerate(types)]
    blocks[2] = replace(blocks[2], data=blocks[2].data + 2**53 + 1)
    statistic = ClassCounts(2)
    got = spooled(Folder(str(tmp_path)), Tiling(50, 2, 3), [blocks[:3], blocks[3:]], [0, 8, 32, 50], statistic)
    assert_same(got, direct(blocks, statistic), exact=True)
    assert {name: a.dtype.str for name, a in got.arrays.items()} == {"sums": "<i8", "real_sums": "<f8"}


def test_empty_blocks_and_empty_panels(tmp_path: Path) -> None:
    tiling = Tiling(40, 3, 2)
    one = Block(np.array([0, 1]), np.array([9], np.int32), np.array([7]), np.array([2]), 40)
    files = [[], [empty_block(40)], [empty_block(40), one, empty_block(40)]]
    got = spooled(Folder(str(tmp_path)), tiling, files, [0, 8, 12, 40], ClassCounts(3))
    want = np.zeros((3, 40), np.int64)
    want[2, 9] = 7
    np.testing.assert_array_equal(got.arrays["sums"], want)
    assert list(SpoolFile.open(Folder(str(tmp_path)), "file-2").pieces(tiling, 12, 40)) == []


def test_facts_come_back(tmp_path: Path) -> None:
    facts = {"coverage": [[3, 5]], "text": "ü", "number": 2**60}
    assert write(Folder(str(tmp_path)), "x", Tiling(3, 2, 0), [], facts).facts == {**facts, "pieces": 0}


@pytest.mark.parametrize("n_blocks", [1, 2000])  # the trailer of the second is longer than what one read takes
def test_trailers_of_any_length(tmp_path: Path, n_blocks: int) -> None:
    blocks = [random_block(2, 6, 2, "uint8", seed, weights=np.array([1, 2])) for seed in range(n_blocks)]
    folder, statistic = Folder(str(tmp_path)), ClassCounts(2)
    assert_same(spooled(folder, Tiling(6, 2, 1), [blocks], [0, 2, 6], statistic), direct(blocks, statistic), exact=True)
    trailer = int.from_bytes((tmp_path / "file-0").read_bytes()[-24:-16], "little")
    assert (trailer > TAIL) == (n_blocks > 1)


# Damage


@pytest.fixture
def sound(tmp_path: Path) -> tuple[SpoolFile, Tiling, Path]:
    tiling = Tiling(100, 2, 4)
    blocks = [random_block(10, 100, 2, dtype, weights=np.arange(10)) for dtype in ("uint8", "int64")]
    return write(Folder(str(tmp_path)), "x.spool", tiling, blocks), tiling, tmp_path / "x.spool"


def read_all(folder: Folder, tiling: Tiling) -> list[list[Any]]:
    found = []
    for first, last in ((0, 48), (48, 100)):
        for piece in SpoolFile.open(folder, "x.spool").pieces(tiling, first, last):
            part = read_pieces([piece], tiling, first, last)
            assert len(piece) == len(part.columns)
            for block in part.blocks():
                check_structure(block)
            arrays = (part.borders, part.columns, part.values, part.weights)
            found.append([None if array is None else array.tolist() for array in arrays])
    return found


def test_a_truncated_file_is_named(sound: Any) -> None:
    file, tiling, path = sound
    content = path.read_bytes()
    for n in (0, 1, 7, 8, 16, 24, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:n])
        with pytest.raises(StoreError, match=r"x\.spool is truncated, damaged"):
            read_all(file.file.folder, tiling)
    path.write_bytes(content[200:])  # the end is there, the beginning is not
    with pytest.raises(StoreError, match=r"x\.spool is truncated"):
        read_all(file.file.folder, tiling)
    path.unlink()
    with pytest.raises(StoreError, match=r"x\.spool is missing"):
        SpoolFile.open(file.file.folder, "x.spool")


@given(position=st.floats(0, 1), noise=st.binary(min_size=1, max_size=64))
def test_no_noise_anywhere_changes_an_entry(sound_bytes: Any, position: float, noise: bytes) -> None:
    """Values, columns, borders and weights: an error, or the same entries where only padding changed."""
    folder, tiling, content, want = sound_bytes
    at = int(position * (len(content) - 1))
    Path(folder.path("x.spool")).write_bytes(content[:at] + noise + content[at + len(noise) :])
    with contextlib.suppress(StoreError):
        assert read_all(folder, tiling) == want


@pytest.fixture(scope="module")
def sound_bytes(tmp_path_factory: Any) -> Any:
    folder, tiling = Folder(str(tmp_path_factory.mktemp("spool"))), Tiling(100, 2, 4)
    blocks = [random_block(10, 100, 2, dtype, weights=np.arange(10)) for dtype in ("uint8", "int64")]
    write(folder, "x.spool", tiling, blocks)
    return folder, tiling, Path(folder.path("x.spool")).read_bytes(), read_all(folder, tiling)


def test_a_file_of_another_tiling_is_refused(sound: Any) -> None:
    file, tiling, _ = sound
    for other in (replace(tiling, shift=3), replace(tiling, n_classes=3), replace(tiling, n_features=1000)):
        with pytest.raises(StoreError, match=r"x\.spool is truncated, damaged"):
            n = other.n_features
            [read_pieces([piece], other, 0, n) for piece in file.pieces(other, 0, n)]


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_columns_beyond_the_last_one_are_refused(tmp_path: Path, dtype: str) -> None:
    """A sound file whose last tile has more columns than the data: kernels would write beside an array."""
    tiling = Tiling(100, 2, 4)
    block = Block(np.array([0, 1]), np.array([103], np.int32), np.ones(1, dtype), np.zeros(1, np.int32), 112)
    file = write(Folder(str(tmp_path)), "x.spool", tiling, [block])
    (piece,) = file.pieces(tiling, 0, 100)
    with pytest.raises(StoreError, match=r"x\.spool is truncated, damaged"):
        read_pieces([piece], tiling, 0, 100)
    (found,) = read_pieces([piece], replace(tiling, n_features=112), 0, 112).blocks()
    assert found.indices.tolist() == [103]


def test_a_file_is_opened_once_for_all_panels_of_a_pass(sound: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, tiling, path = sound
    folder, opened = file.file.folder, OpenedFiles()
    first = opened.open(folder, "x.spool", "a pass")
    path.rename(path.with_suffix(".away"))
    assert opened.open(folder, "x.spool", "a pass") is first
    with pytest.raises(StoreError, match=r"x\.spool is missing"):
        list(first.pieces(tiling, 0, 48))
    with pytest.raises(StoreError, match=r"x\.spool is missing"):
        opened.open(folder, "x.spool", "another")
    path.with_suffix(".away").rename(path)
    monkeypatch.setattr("nfs_dask.files.spool.MOST_PLACES", 0)
    assert opened.open(folder, "x.spool", "a third") is not opened.open(folder, "x.spool", "a third")


def test_closing_is_what_completes_a_file() -> None:
    buffer = io.BytesIO()
    writer = SpoolWriter(buffer, "x", Tiling(50, 2, 2))
    writer.add(random_block(5, 50, 2, "uint8"))
    assert not buffer.getvalue().endswith(MAGIC)
    writer.close(FACTS)
    assert buffer.getvalue().endswith(MAGIC)
