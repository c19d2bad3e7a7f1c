"""The recipes of CONTRIBUTING.md, followed: each of these is added by what it says, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.arrays.block import Block
from nfs_dask.documents.checking import Checker, TextColumn
from nfs_dask.documents.document_source import Batch
from nfs_dask.documents.lines import FileDocuments
from nfs_dask.documents.locations import FORMATS
from nfs_dask.errors import InputError
from nfs_dask.registry import RULES, Rule
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.path_table import Path as TableOfKs
from nfs_dask.selection.rules import PathData
from nfs_dask.statistics.statistic import EntrywiseStatistic, State, array_of
from nfs_dask.testing import check_statistic
from nfs_dask.text.strings import Strings
from tests.helpers.places import ROOT


@dataclass(frozen=True)
class NegativeCounts(EntrywiseStatistic):
    """How many values below zero each feature has in each class."""

    n_classes: int
    name: ClassVar[str] = "negative_counts"
    accepts: ClassVar[Any] = "signed"

    def zero(self) -> State:
        return State({}, {"rows": np.zeros(self.n_classes, np.int64)})

    def update_totals(self, totals: dict[str, Any], block: Block) -> None:
        totals["rows"] += np.bincount(block.codes, minlength=self.n_classes)

    def update_arrays(self, arrays: dict[str, Any], block: Block) -> None:
        found = array_of(arrays, "negative", self.n_classes, block.n_features, "int64")
        below = block.data < 0
        rows = np.repeat(np.arange(len(block.codes)), np.diff(block.indptr))[below]
        np.add.at(found, (block.codes[rows], block.indices[below]), 1)

    def array_nbytes(self, n_features: int, kind: Any, weighted: bool) -> int:
        return self.n_classes * n_features * 8


def test_a_statistic_is_added(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(-2, 3, size=(40, 7)), np.arange(40) % 2
    blocks = []
    for number, rows in enumerate(np.array_split(np.arange(40), 4)):
        part = sp.csr_array(X[rows])
        blocks.append(Block(part.indptr, part.indices, part.data, y[rows], 7, None, int(rows[0]), number))
    check_statistic(NegativeCounts(2), blocks, exact=True)
    dataset = nfs.ingest(X, tmp_path / "s.zarr", labels=y)
    expected = [(X[y == c] < 0).sum(axis=0).tolist() for c in (0, 1)]
    for engine in (nfs.SerialEngine(), nfs.SerialEngine(panels=3)):
        state = nfs.open_dataset(tmp_path / "s.zarr", reuse=False).reduce(NegativeCounts(2), engine).state
        assert state.arrays["negative"].tolist() == expected
    assert dataset.reduce(NegativeCounts(2)).state.arrays["negative"].tolist() == expected
    assert dataset.reduce(NegativeCounts(2)).reused, "it is kept beside the data as any other"


class ParagraphDocuments(FileDocuments):
    """Documents with blank lines between them."""

    format = "paragraphs"

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[str, int]]:
        yield from zip(paths, sizes, strict=True)

    def _read(self, part: str) -> Iterator[Batch]:
        texts = Path(part).read_text().split("\n\n")
        where = "{}: paragraph {}".format
        yield Checker(self.columns).batch([TextColumn(Strings.of(texts))], None, None, partial(where, part))


def test_a_format_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, ".par", ParagraphDocuments)  # type: ignore[arg-type]
    (tmp_path / "tales.par").write_text("one fish\n\ntwo fish\nred fish")
    dataset = nfs.ingest(str(tmp_path / "tales.par"), tmp_path / "s.zarr")
    assert (dataset.n_rows, dataset.names(range(dataset.n_features))) == (2, ["fish", "one", "red", "two"])


def half(data: PathData, path: TableOfKs, options: Mapping[str, Any]) -> Chosen:
    """The smallest k with half of all gain."""
    k = int(path.ks[np.argmax(path.value >= path.value[-1] / 2)])
    return Chosen(k, rule="half", why=f"{k} features have half of the gain", table=[])


def test_a_rule_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "half", Rule("half", f"{__name__}:half", reads=False, takes=frozenset()))
    rng = np.random.default_rng(0)
    path = nfs.path(rng.poisson(1, size=(60, 9)), "bernoulli", y=np.arange(60) % 2, binarize=0.0)
    k = path.choose("half")
    assert path.value[k - 1] >= path.value[-1] / 2 > (path.value[k - 2] if k > 1 else 0)
    with pytest.raises(InputError, match=r"\"half\" looks at the whole path"):
        path.choose("half", ks=[1])


ASK = """
import sys
from nfs_dask.registry import RULES, Rule
RULES["half"] = Rule("half", "tests.test_recipes:half", reads=False, takes=frozenset())
from nfs_dask.cli.main import cli
cli(["path", sys.argv[1], "--method", "bernoulli", "--binarize", "0", "--choose", "half"])
"""


def test_the_command_knows_an_added_rule(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nfs.ingest(rng.poisson(1, size=(60, 9)), tmp_path / "s.zarr", labels=np.arange(60) % 2)
    command = [sys.executable, "-c", ASK, str(tmp_path / "s.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert "by half: " in done.stdout and "features have half of the gain" in done.stdout
