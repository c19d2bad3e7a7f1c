"""Claims: who writes to a place, so that nobody else does, for as long as that process lives.

    writing            who was the first: machine, process, when it was started, and its last sign of life
    writing-<token>    who took the place over from the claim of that token, whose process is gone

A claim is taken by creating an object that is not there, which only one can do; so is the claim that follows one whose
holder is gone. On the machine of the holder that is known at once. Elsewhere a holder counts as gone after a while
without a sign of life. As clocks of machines may differ by hours, no clock is enough for that: whoever seems to be gone
is watched for longer than signs of life are apart, and nothing may come.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder

WRITING = "writing"
OWNER = "owner"  # the file that says whose a temporary folder is
BEAT_SECONDS = 15.0  # between two signs of life
GONE_SECONDS = 180.0  # without one, after which a holder on another machine seems to be gone
WATCH_SECONDS = 3 * BEAT_SECONDS  # that it is watched then

_MOST = 1 << 16  # bytes of a claim
_TOLERANCE = 2.0  # seconds, of the start of a process


@dataclass(frozen=True)
class Holder:
    """A process, told from others of this and of other machines."""

    host: str
    machine: str  # this boot of the machine, and the processes that its numbers count; empty where that is unknown
    pid: int
    started: float
    token: str
    alive: float = 0.0  # seconds since the epoch, at its last sign of life

    @classmethod
    def this(cls) -> Holder:
        started = psutil.Process().create_time()
        return cls(platform.node(), _machine(), os.getpid(), started, uuid.uuid4().hex[:12], time.time())

    @classmethod
    def from_bytes(cls, content: bytes) -> Holder | None:
        """None where that is no claim of this form."""
        try:
            found = json.loads(content)
            kinds = {"host": str, "machine": str, "pid": int, "started": float, "token": str, "alive": float}
            values = {name: kind(found[name]) for name, kind in kinds.items()}
            return cls(**values) if values["token"].isalnum() else None
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
            return None

    def to_bytes(self) -> bytes:
        return json.dumps({**asdict(self), "alive": time.time()}).encode()

    @property
    def here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return bool(self.machine) and self.machine == _machine()

    @property
    def known_gone(self) -> bool:
        """Whether it was a process of this machine, and is no more."""
        if not self.here:
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) > _TOLERANCE
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False

    @property
    def gone(self) -> bool:
        """Whether it is gone as far as clocks tell."""
        return self.known_gone or (not self.here and time.time() - self.alive > GONE_SECONDS)

    @property
    def silent(self) -> bool:
        """Whether it may be gone: also where its sign of life is in the future, and clocks tell nothing."""
        return self.gone or (not self.here and self.alive - time.time() > BEAT_SECONDS)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _machine() -> str:
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class Claim:
    """A place that this process holds. Signs of life go on until it is released."""

    def __init__(self, folder: Folder, name: str, chain: list[str], holder: Holder) -> None:
        self._folder, self._name, self._chain, self._holder = folder, name, chain, holder
        self.taken_over = len(chain) > 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="nfs-dask-claim", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            try:
                self._folder.scratch.write(self._name, self._holder.to_bytes())
            except OSError:  # the next one may get through
                continue

    def check(self) -> None:
        """Refuse to go on where somebody else has taken the place, as nothing was heard of this process for long."""
        if self._folder.exists(f"{WRITING}-{self._holder.token}"):
            raise StoreError(
                f"{self._folder.location} was taken over by another process, as this one gave no sign of life for "
                f"{GONE_SECONDS:.0f} s; see what became of it, and try again"
            )

    def release(self) -> None:
        """Let others write here. Doing it again changes nothing."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        for name in [*self._chain, self._name]:  # from the first on: without that one the others mean nothing
            self._folder.delete(name)


def take(folder: Folder, what: str) -> Claim:
    """Claim a folder, or refuse, saying who holds it. ``what`` is the place, as people know it."""
    mine = Holder.this()
    chain: list[tuple[str, Holder]] = []  # claims of holders that are gone
    while True:
        name = f"{WRITING}-{chain[-1][1].token}" if chain else WRITING
        if folder.write_new(name, mine.to_bytes()):
            # Whoever followed in this chain may have released it a moment ago, from its beginning on.
            if all(read(folder, old) == holder for old, holder in chain):
                return Claim(folder, name, [old for old, _ in chain], mine)
            folder.delete(name)
            chain = []
        elif (holder := read(folder, name)) is not None:
            followed = folder.exists(f"{WRITING}-{holder.token}")
            if not followed and not _is_gone(folder, name, holder):
                raise StoreError(f"{what} is being written {_by(holder)}")
            chain.append((name, holder))
        elif folder.exists(name):
            raise StoreError(f"{what} is being written {_by(None)}")
        else:  # released meanwhile
            chain = []


def read(folder: Folder, name: str) -> Holder | None:
    """Whose claim it is; None where there is none, or none that says so."""
    try:
        return Holder.from_bytes(folder.read(name, 0, _MOST))
    except StoreError:
        return None


def is_abandoned(folder: Folder) -> bool:
    """Whether there is a claim, and whoever holds it is gone."""
    name, holder = _last(folder)
    return holder is not None and _is_gone(folder, name, holder)


def seems_abandoned(folder: Folder) -> bool:
    """The same at a glance; `take` tells for sure."""
    holder = _last(folder)[1]
    return holder is not None and holder.silent


def _last(folder: Folder) -> tuple[str, Holder | None]:
    """The claim that nobody has taken over."""
    name = WRITING
    holder = read(folder, name)
    while holder is not None and folder.exists(f"{WRITING}-{holder.token}"):
        name = f"{WRITING}-{holder.token}"
        holder = read(folder, name)
    return name, holder


def _is_gone(folder: Folder, name: str, holder: Holder) -> bool:
    """Whether a holder is gone; one elsewhere gives no sign of life either while it is watched."""
    if not holder.silent or holder.known_gone:
        return holder.gone
    return not shows_life(lambda: read(folder, name), holder, WATCH_SECONDS)


def shows_life(look: Callable[[], Holder | None], holder: Holder, seconds: float) -> bool:
    """Whether a sign of life of a holder comes within some seconds, on whatever clock; not if another is there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(1.0, seconds / 10))
        found = look()
        if found != holder:
            return found is not None and found.token == holder.token
    return False


def forget(folder: Folder) -> None:
    """Remove all claims, whoever holds them."""
    for name in folder.names():
        if name == WRITING or name.startswith(f"{WRITING}-"):
            folder.delete(name)


def sign(folder: Folder, name: str = OWNER) -> None:
    """Say in a file that it, or the folder it is in, belongs to this process."""
    folder.scratch.write(name, Holder.this().to_bytes())


def sweep(folder: Folder, beginning: str) -> None:
    """Remove what begins with that and belonged to processes of this machine that are gone."""
    with suppress(OSError):  # where one may write, but not look
        for name in [name for name in folder.names() if name.startswith(beginning)]:
            with suppress(OSError):  # somebody else's
                _sweep(folder, name)


def _sweep(folder: Folder, name: str) -> None:
    file, inside = read(folder, name), read(folder / name, OWNER)
    if file is not None and file.known_gone:
        folder.delete(name)
    elif inside is not None and inside.known_gone:
        (folder / name).remove()


@contextmanager
def held(folder: Folder, what: str) -> Iterator[Claim]:
    """Hold a folder for the length of a block."""
    claim = take(folder, what)
    try:
        yield claim
    finally:
        claim.release()


def _by(holder: Holder | None) -> str:
    if holder is None:
        return (
            "by another process, or one died while it wrote; if none is running, clear the place with "
            "nfs_dask.store.publish.clean_up, and try again"
        )
    if holder.here:
        return f"by {holder}, which is running; wait until it has finished, or choose another place"
    heard = max(0, round(time.time() - holder.alive))
    return (
        f"by {holder}, of which there was a sign of life {heard} s ago; wait until it has finished. If it is gone, the "
        f"place is free {GONE_SECONDS:.0f} s after the last sign, or at once with nfs_dask.store.publish.clean_up"
    )
