"""Statistics kept beside the data they were made from, found again by fingerprint and description.

    <key>.json        names the folder of a finished state; written last, so it never points at half of one
    <key>-<random>/   a state, see `nfs_dask.store.states`

Two clients that make the same statistic at once each fill a folder of their own; the first pointer stays, and the other
folder goes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import sealed, unsealed
from nfs_dask.store.states import StoredPanels

logger = logging.getLogger("nfs_dask")

MAX_POINTER = 1 << 20

_FOLDER = re.compile(r"[0-9a-f]{32}-[0-9a-f]{8}")


class Described(Protocol):
    """What can be kept: a `Statistic`, or a result of several passes that describes itself in the same way."""

    def describe(self) -> dict[str, Any]:
        """Everything that changes the numbers, as JSON."""
        ...

    def supersets(self) -> Sequence[Described]:
        """What else would hold all that this does."""
        ...


@dataclass(frozen=True)
class Kept:
    """The kept statistics of one dataset, in one state of its data."""

    folder: Folder
    fingerprint: str

    def _key(self, description: dict[str, Any]) -> str:
        identity = json.dumps([self.fingerprint, description], sort_keys=True)
        return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()

    def descriptions(self) -> list[dict[str, Any]]:
        """What is kept of the data as they are now, in the words of `Statistic.describe`."""
        pointers = [name for name in self.folder.names() if name.endswith(".json")]
        found = [self._pointer(name).get("statistic", {}) for name in pointers]
        return [words for name, words in zip(pointers, found, strict=True) if name == f"{self._key(words)}.json"]

    def find(self, statistic: Described) -> StoredPanels | None:
        """A finished state that holds this statistic."""
        for candidate in (statistic, *statistic.supersets()):
            pointer = f"{self._key(candidate.describe())}.json"
            if self.folder.exists(pointer):
                words = self._pointer(pointer)
                if words.get("statistic") != json.loads(json.dumps(candidate.describe())):
                    raise StoreError(
                        f"{self.folder.path(pointer)} points at another statistic; delete it and run again"
                    )
                found = StoredPanels.find(self.folder / words["folder"])
                if found is None:
                    raise StoreError(f"{self.folder.path(pointer)} points at nothing; delete it and run again")
                return found
        return None

    def verify(self) -> None:
        """Read all that is kept, also of the data as they were, and refuse what is not what was written."""
        for name in self.folder.names():
            if name.endswith(".json"):
                StoredPanels(self.folder / self._pointer(name)["folder"]).verify()

    def _pointer(self, name: str) -> dict[str, Any]:
        """The content of a pointer, which names a folder beside it and nothing else."""
        try:
            found = unsealed(self.folder.read(name, 0, MAX_POINTER))
        except (ValueError, RecursionError):
            found = {}
        # Another key would be the checksum's, no longer known as such.
        if found.keys() != {"folder", "statistic"} or not _FOLDER.fullmatch(str(found["folder"])):
            raise StoreError(f"{self.folder.path(name)} is damaged; delete it and run again")
        return found

    def reserve(self, statistic: Described) -> Folder | None:
        """A new folder to write the statistic to; None where nothing can be written."""
        target = self.folder / f"{self._key(statistic.describe())}-{uuid.uuid4().hex[:8]}"
        try:
            target.write("begun", b"")
        except OSError as error:
            logger.info("statistics are not kept: %s cannot be written (%s)", self.folder.location, error)
            return None
        return target

    def commit(self, statistic: Described, target: Folder) -> bool:
        """Make a finished state the one that is found; False if somebody else's is already."""
        content = {"folder": target.location.rsplit("/", 1)[-1], "statistic": statistic.describe()}
        return self.folder.write_new(f"{self._key(statistic.describe())}.json", sealed(content))
