"""Where a pass puts its files, what of them stays, and how a run is recognised when it resumes."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import make_plan
from nfs_dask.engine.run_directory import RunDirectory, open_run_directory, pass_name
from nfs_dask.engine.run_status import read_run
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError, ResumeError, StoreError
from nfs_dask.files.arrayfile import ArrayFile, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.sources.views import some_blocks, some_columns
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.store.states import StoredPanels, write_state
from nfs_dask.testing import assert_same
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50)
COUNTS = ClassCounts(3)


def plan_for(spool: str | None) -> Any:
    return make_plan(COUNTS, CORPUS, Resources(spool=spool))


def opened(run: Path | None = None, spool: Path | None = None, beside: Path | None = None) -> Any:
    texts = [None if path is None else str(path) for path in (run, spool)]
    return open_run_directory(*texts, None if beside is None else Folder(str(beside)), COUNTS, CORPUS)


# Without a run


def test_places_come_in_the_order_of_preference(tmp_path: Path) -> None:
    with opened(tmp_path / "run", tmp_path / "spool", tmp_path / "beside") as place:
        names = [Path(folder.location).name for folder in place.candidates]
    assert names[:3] == ["run", "spool", "beside"]
    assert len(names) == 4  # and the system's folder for temporary files
    with opened() as place:
        assert len(place.candidates) == 1


@pytest.mark.parametrize("error", [None, OSError, KeyboardInterrupt])
def test_temporary_folders_go_however_a_pass_ends(tmp_path: Path, error: Any) -> None:
    def fill() -> None:
        with opened(spool=tmp_path) as place:
            plan = plan_for(str(tmp_path))
            for folder in (place.spool(plan), place.output(plan)):
                folder.write("x", b"")
            assert len(list(tmp_path.iterdir())) == 2
            place.complete()
            if error is not None:
                raise error

    if error is None:
        fill()
    else:
        with pytest.raises(error):
            fill()
    assert list(tmp_path.iterdir()) == []


def test_a_result_in_temporary_files_lives_as_long_as_its_reader(tmp_path: Path) -> None:
    with opened(spool=tmp_path) as place:
        out = place.output(plan_for(str(tmp_path)))
        write_state(out, State({"sums": np.ones((1, 2), int)}, {}), 2, {})
        panels = StoredPanels(out)
        place.hand_over(panels)
    assert panels.arrays(0)["sums"].sum() == 2
    del panels
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_spool_needs_a_place(tmp_path: Path) -> None:
    with opened() as place, pytest.raises(InputError, match="no folder that all workers reach"):
        place.spool(plan_for(None))


# With a run


def test_a_run_keeps_its_files_until_the_pass_is_complete(tmp_path: Path) -> None:
    run = tmp_path / "run"
    plan = plan_for(str(run))
    with opened(run) as place:
        assert place.plan() is None
        assert place.finished() is None
        place.begin(plan)
        place.spool(plan).write("x", b"")
        place.checkpoints.write("x", b"")
        write_state(place.output(plan), State({}, {}), 2, {})
    assert sorted(path.name for path in (run / "class_counts").iterdir()) == [
        "checkpoints",
        "plan.json",
        "results",
        "spool",
    ]
    with opened(run) as place:
        assert place.plan() == plan
        place.complete()
        assert place.finished() is not None
    assert sorted(path.name for path in (run / "class_counts").iterdir()) == ["finished.json", "plan.json", "results"]


def test_the_first_plan_stays(tmp_path: Path) -> None:
    first = plan_for(str(tmp_path))
    with opened(tmp_path) as place:
        place.begin(first)
        place.begin(make_plan(COUNTS, CORPUS, Resources(spool=str(tmp_path)), panels=3))
        assert place.plan() == first


def test_a_run_needs_data_that_can_be_recognised(tmp_path: Path) -> None:
    class Anonymous(GeneratedCorpus):
        fingerprint = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]

    with (
        pytest.raises(InputError, match="can be recognised when the run resumes; ingest them"),
        open_run_directory(str(tmp_path), None, None, COUNTS, Anonymous(600, 300, 3)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_other_data_or_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    with opened(tmp_path) as place:
        place.begin(plan_for(str(tmp_path)))
    other = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50, seed=99)
    with (
        pytest.raises(ResumeError, match=r"other data \(fingerprint: .* then, .* now\)"),
        open_run_directory(str(tmp_path), None, None, COUNTS, other),
    ):
        pass
    documents = replace(COUNTS, with_documents=True)
    with (
        open_run_directory(str(tmp_path), None, None, documents, CORPUS) as place,
        pytest.raises(ResumeError, match=r"other settings \(with_documents: False then, True now\)"),
    ):
        place.plan()


def test_a_run_folder_that_workers_do_not_reach_is_refused(tmp_path: Path) -> None:
    """Checkpoints would land on disks of their own, and nothing could resume."""
    with opened(tmp_path / "run", tmp_path / "shared") as place:
        for reached in (str(tmp_path / "shared"), None):
            with pytest.raises(InputError, match="not all workers can write to the run folder .*run; name one"):
                place.begin(plan_for(reached))
        assert place.plan() is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"null", b"{}", b'{"format": [], "data": 3}', b"[" * 99999]
)
@pytest.mark.parametrize("name", ["run.json", "class_counts/plan.json"])
def test_damaged_files_of_a_run_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    with opened(tmp_path) as place:
        place.begin(plan_for(str(tmp_path)))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match=name), opened(tmp_path) as place:
        place.plan()


def test_a_run_from_the_future_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(StoreError, match="is a run of format 99; this version reads 1"), opened(tmp_path):
        pass


# Resuming from checkpoints


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SerialEngine, Any, Path]:
    """A dense pass over 12 blocks that stopped before block 7, with what it had on disk."""
    monkeypatch.setattr("nfs_dask.engine.tasks.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("nfs_dask.engine.plan.BATCH_NBYTES", CORPUS.block_nbytes)
    (tmp_path / "marks").mkdir()
    engine = SerialEngine(panels=1, run=str(tmp_path / "run"))
    source = Misbehaving(CORPUS, "raise", at_block=7, marks=str(tmp_path / "marks"))
    with pytest.raises(OSError, match="enough"):
        engine.reduce(COUNTS, source)
    (checkpoint,) = (tmp_path / "run" / "class_counts" / "checkpoints").iterdir()
    return engine, source, checkpoint


def test_a_checkpoint_saves_what_was_read(interrupted: Any) -> None:
    engine, source, _ = interrupted
    assert_same(engine.reduce(COUNTS, source).state, SerialEngine().reduce(COUNTS, CORPUS).state, exact=True)
    assert [source.reads(n) for n in (0, 6, 7, 11)] == [1, 1, 2, 1]


def test_a_damaged_checkpoint_is_made_again(interrupted: Any, caplog: pytest.LogCaptureFixture) -> None:
    engine, source, checkpoint = interrupted
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 3] ^= 1
    checkpoint.write_bytes(content)
    assert_same(engine.reduce(COUNTS, source).state, SerialEngine().reduce(COUNTS, CORPUS).state, exact=True)
    assert f"{checkpoint.name} is truncated, damaged" in caplog.text
    assert [source.reads(n) for n in (0, 6, 7, 11)] == [2, 2, 2, 1]  # nothing of it was believed


@pytest.mark.parametrize(
    "change",
    [
        {"facts": {"coverage": [[0, 99]], "mended": 0}},
        {"facts": {"coverage": [[5, 2]], "mended": 0}},
        {"facts": {"mended": 0}},
        {"facts": {}},
        {"arrays/sums": np.zeros((3, 5), np.int64)},  # narrower than the data: kernels would write beyond
        {"arrays/sums": np.zeros((), np.int64)},
        {"nbytes/x": np.zeros(3)},
    ],
)
def test_a_hostile_checkpoint_is_refused(interrupted: Any, change: dict[str, Any]) -> None:
    engine, source, checkpoint = interrupted
    folder = Folder(str(checkpoint.parent))
    stored = ArrayFile.open(folder, checkpoint.name)
    arrays = {**{key: stored.array(key) for key in stored.keys}, **change}
    facts = arrays.pop("facts", stored.facts)
    write_arrays(folder, checkpoint.name, arrays, facts)
    with pytest.raises(StoreError, match="is truncated, damaged"):
        engine.reduce(COUNTS, source)


def test_the_statistic_names_the_folder_of_its_pass() -> None:
    place = RunDirectory([], Folder("/run"), COUNTS.describe(), pass_name(COUNTS, CORPUS))
    assert place.checkpoints == Folder("/run/class_counts/checkpoints")
    assert place.results == Folder("/run/class_counts/results")
    assert RunDirectory([], None, COUNTS.describe(), "class_counts").checkpoints is None


@dataclass(frozen=True)
class Refined(ClassCounts):
    """Counts that depend on what an earlier pass found."""

    found: int = field(kw_only=True)

    name = "refined"


def test_several_passes_with_one_statistic_have_folders_of_their_own() -> None:
    some = some_columns(CORPUS, np.array([1, 5]))
    names = [
        pass_name(statistic, source)
        for statistic in (COUNTS, Refined(3, found=1), Refined(3, found=2))
        for source in (CORPUS, some, some_blocks(CORPUS, np.array([2])))
    ]
    assert names[0] == "class_counts"
    assert len(set(names)) == 9
    assert all(re.fullmatch(r"(class_counts|refined)-[0-9a-f]{12}", name) for name in names[1:])
    assert names[3] == pass_name(Refined(3, found=1), CORPUS)


def test_a_run_goes_on_with_views_of_its_data(tmp_path: Path) -> None:
    some = some_columns(CORPUS, np.array([1, 5]))
    engine = SerialEngine(run=str(tmp_path))
    whole = engine.reduce(COUNTS, CORPUS).state.arrays["sums"]
    np.testing.assert_array_equal(engine.reduce(COUNTS, some).state.arrays["sums"], whole[:, [1, 5]])
    run = read_run(tmp_path)
    assert (run.fingerprint, run.features, run.finished) == (CORPUS.fingerprint, 300, True)
    assert [(one.name, one.plan.n_features) for one in run.passes] == [("class_counts", 300), ("class_counts", 2)]
    assert engine.reduce(COUNTS, some).reused
    other = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50, seed=99)
    with pytest.raises(ResumeError, match="other data"):
        engine.reduce(COUNTS, some_columns(other, np.array([1, 5])))


@dataclass(frozen=True)
class Lengthy(Refined):
    """What it goes by takes long to say, so that it is not said where nobody asks."""

    name = "lengthy"

    def describe(self) -> dict[str, Any]:
        assert self.found != 0, "nobody is to ask"
        return {**self.in_short(), "found": self.found}

    def in_short(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes}


def test_only_a_run_folder_asks_for_all_that_tells_passes_apart(tmp_path: Path) -> None:
    assert SerialEngine().reduce(Lengthy(3, found=0), CORPUS).plan.statistic == Lengthy(3, found=0).in_short()
    engine = SerialEngine(run=str(tmp_path))
    for found in (1, 2):
        assert not engine.reduce(Lengthy(3, found=found), CORPUS).reused
        assert engine.reduce(Lengthy(3, found=found), CORPUS).reused
    assert sorted(one.plan.statistic["found"] for one in read_run(tmp_path).passes) == [1, 2]
