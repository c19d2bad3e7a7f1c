"""Where a pass puts its files, what of them outlives it, and what is cleaned up.

With a run folder, everything a pass has finished stays until the pass is complete, so that another process can go on.
Without one, temporary files go beside the data, or to ``spool``, and are removed when the pass ends, however it ends.

    run.json                 the data this run belongs to
    resources-<name>.json    what a procedure of several passes has been planned for
    <pass>/plan.json         the plan, kept by whoever resumes
    <pass>/checkpoints/      unfinished and finished dense runs
    <pass>/spool/            finished batches of a scatter pass
    <pass>/results/          the state, unless it is kept beside the data
    <pass>/finished.json     when the pass is complete

A pass goes by the name of its statistic. Where a result takes several passes with one statistic, a digest follows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import re
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError, NfsDaskError, ResumeError, StoreError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.claims import sign, sweep
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import sealed, unsealed
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.store.states import StoredPanels

logger = logging.getLogger("nfs_dask")

FORMAT = 1
MOST_NOTE = 64 << 20  # bytes of a JSON file
RUN, PLAN, FINISHED = "run.json", "plan.json", "finished.json"
_BATCH = re.compile(r"blocks-(\d{8})-(\d{8})\.spool")
_CHECKPOINT = re.compile(r"run-\d{5}\.fold")


@dataclass
class RunDirectory:
    """The folders of one pass."""

    candidates: list[Folder]  # where temporary files may go, best first
    run: Folder | None
    statistic: dict[str, Any]
    name: str  # of the pass
    temporary: list[Folder] = field(default_factory=list)

    @property
    def _pass(self) -> Folder | None:
        return None if self.run is None else self.run / self.name

    @property
    def checkpoints(self) -> Folder | None:
        return None if self._pass is None else self._pass / "checkpoints"

    @property
    def results(self) -> Folder | None:
        return None if self._pass is None else self._pass / "results"

    def finished(self) -> StoredPanels | None:
        """The result of this pass, if an earlier process completed it in the same run."""
        found = None if self.results is None else StoredPanels.find(self.results)
        if found is not None:
            _refuse_difference(found.folder, found.facts.get("statistic", self.statistic), self.statistic, "settings")
        return found

    def plan(self) -> Plan | None:
        """The plan an earlier process began with; a resumed pass keeps it."""
        if self.run is None or self._pass is None or not self._pass.exists(PLAN):
            return None
        with reading(self._pass, PLAN) as content:
            plan = Plan.from_json(content)
            then = dict(plan.statistic)
        _refuse_difference(self._pass, then, self.statistic, "settings")
        # The note has no secrets, so of a URL maybe not all; and the folder may have been moved since.
        return replace(plan, resources=replace(plan.resources, spool=self.run.location))

    def begin(self, plan: Plan) -> None:
        """Note the plan, so that the pass can be resumed."""
        if self.run is not None and plan.resources.spool != self.run.location:
            raise InputError(
                f"not all workers can write to the run folder {self.run.location}; name one that they share, "
                "or do without"
            )
        if self._pass is not None and not self._pass.exists(PLAN):
            self._pass.write(PLAN, sealed({**plan.to_json(), "statistic": self.statistic}))

    def spool(self, plan: Plan) -> Folder:
        """The folder for spool files: in the run folder, or a temporary one."""
        if self._pass is not None:
            return self._pass / "spool"
        if plan.resources.spool is None:
            raise InputError("this plan spools entries, but there is no folder that all workers reach")
        return self._temporary(Folder(plan.resources.spool), "spool")

    def output(self, plan: Plan) -> Folder:
        """Where panels go when they are not kept with the data."""
        if self.results is not None:
            return self.results
        assert plan.resources.spool is not None
        return self._temporary(Folder(plan.resources.spool), "panels")

    def _temporary(self, base: Folder, what: str) -> Folder:
        sweep(base, f".nfs-{what}-")  # what was left by processes that were killed
        folder = (base / f".nfs-{what}-{uuid.uuid4().hex[:12]}").scratch
        self.temporary.append(folder)
        sign(folder)
        return folder

    def hand_over(self, panels: StoredPanels) -> None:
        """Let a result in temporary files live as long as the object that reads it."""
        if panels.folder in self.temporary:
            self.temporary.remove(panels.folder)
            weakref.finalize(panels, _remove, panels.folder)

    def complete(self) -> None:
        """The result is safe, here or beside the data: what only served to reach it can go."""
        if self._pass is not None:
            self._pass.write(FINISHED, sealed({}))
        for folder in (self.checkpoints, None if self._pass is None else self._pass / "spool"):
            if folder is not None:
                folder.remove()


def _remove(folder: Folder) -> None:
    """Remove a folder when its last reader is collected, which may be in a thread that must not wait for a network."""
    ending = not threading.main_thread().is_alive()  # nobody would wait for another thread then
    if folder.remote and not ending:
        threading.Thread(target=folder.remove, name="nfs-dask-clean-up").start()
    else:
        folder.remove()


@contextmanager
def open_run_directory(
    run: str | None, spool: str | None, beside: Folder | None, statistic: Statistic, source: Source
) -> Iterator[RunDirectory]:
    """The folders of a pass; temporary ones are removed at the end, also on errors and on Ctrl-C."""
    run_folder = None if run is None else Folder.of(run)
    given = [run_folder, None if spool is None else Folder.of(spool), *_usual_places(beside)]
    # Only a run has passes that are to be told from others.
    name, described = statistic.name, statistic.in_short()
    if run_folder is not None:
        name, described = pass_name(statistic, source), statistic.describe()
    place = RunDirectory([folder for folder in given if folder is not None], run_folder, described, name)
    if run_folder is not None:
        _enter_run(run_folder, source.origin)
    try:
        yield place
    except BaseException:
        if run_folder is not None:
            logger.warning("what was finished is kept in %s; give the same run folder to resume", run_folder.location)
        raise
    finally:
        for folder in place.temporary:
            folder.remove()


def pass_name(statistic: Statistic, source: Source) -> str:
    """What sets a pass apart from the others of a run: the name of its statistic, and where that is not all, a digest.

    Parameters that have no defaults come from earlier passes, and views are of what those have left over.
    """
    own = [f for f in dataclasses.fields(statistic) if f.name != "n_classes"]  # type: ignore[arg-type]
    found = any(f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING for f in own)
    if not found and source.origin is source:
        return statistic.name
    identity = json.dumps([statistic.describe(), source.fingerprint], sort_keys=True)
    return f"{statistic.name}-{hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()}"


def resources_of_run(run: str | None, name: str, source: Source, measure: Callable[[], Resources]) -> Resources:
    """What a procedure may count on: as it is measured or, in a run, as it was when the procedure began.

    By it a procedure decides how much each pass is about, and workers never take the same to the byte again. Passes
    that are to be resumed have to be asked for as they were.
    """
    if run is None:
        return measure()
    folder, noted = Folder.of(run), f"resources-{name}.json"
    _enter_run(folder, source.origin)
    if not folder.exists(noted):
        folder.write(noted, sealed(dataclasses.asdict(measure())))
    with reading(folder, noted) as content:
        return Resources.from_json(content)


def _usual_places(beside: Folder | None) -> list[Folder | None]:
    """Beside the data, or this machine's temporary folder: whichever is likely to be the faster of the two first."""
    here = Folder.of(tempfile.gettempdir())
    return [here, beside] if beside is not None and beside.remote else [beside, here]


def _enter_run(run: Folder, source: Source) -> None:
    """Begin a run, or make sure that it belongs to these data."""
    if source.fingerprint is None:
        raise InputError(
            "a run folder needs data that can be recognised when the run resumes; ingest them into a store first"
        )
    identity = {"rows": source.n_rows, "features": source.n_features, "fingerprint": source.fingerprint}
    if not run.exists(RUN):
        run.write(RUN, sealed({"format": FORMAT, "data": identity}))
        return
    _refuse_difference(run, read_identity(run), identity, "data")


def read_identity(run: Folder) -> dict[str, Any]:
    """The data a run belongs to."""
    with reading(run, RUN) as recorded:
        written, data = recorded["format"], dict(recorded.get("data", {}))
    if written != FORMAT:
        raise StoreError(f"{run.location} is a run of format {written}; this version reads {FORMAT}")
    return data


@contextmanager
def reading(folder: Folder, name: str) -> Iterator[Any]:
    """The content of a JSON file of a run, with errors about it put into words."""
    try:
        yield unsealed(folder.read(name, 0, MOST_NOTE))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, NfsDaskError):
            raise
        raise StoreError(
            f"{folder.path(name)} is damaged or not of this package; start a new run in another folder"
        ) from error


def _refuse_difference(folder: Folder, then: dict[str, Any], now: dict[str, Any], what: str) -> None:
    differing = [f"{key}: {then.get(key)} then, {now.get(key)} now" for key in now if then.get(key) != now.get(key)]
    if differing:
        raise ResumeError(
            f"{folder.location} was begun with other {what} ({'; '.join(differing)}). "
            "Resume with what it was begun with, or start a new run in another folder"
        )


def kept_blocks(folder: Folder) -> int:
    """Return how many blocks of an unfinished pass need not be read again: spooled ones, and those of checkpoints."""
    batches = [found for name in (folder / "spool").names() if (found := _BATCH.fullmatch(name))]
    kept = sum(int(found[2]) - int(found[1]) for found in batches)
    for name in filter(_CHECKPOINT.fullmatch, (folder / "checkpoints").names()):
        file = ArrayFile.open(folder / "checkpoints", name)  # of which only the header is read
        try:
            kept += sum(int(stop) - int(start) for start, stop in file.facts["coverage"])
        except (LookupError, TypeError, ValueError) as error:
            raise file.damaged() from error
    return kept
