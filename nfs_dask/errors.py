"""Exceptions and warnings. Every message says what was given, but for secrets, what is allowed, and what to do next."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from nfs_dask.redaction import redacted

_PACKAGE = str(Path(__file__).parent)


class NfsDaskError(Exception):
    """Base of everything this package raises on purpose. ``exit_code`` is what the command line returns."""

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(given) if isinstance(given, str) else given for given in args))


class InputError(NfsDaskError, ValueError):
    """The data, the labels or an argument cannot be used as given."""

    exit_code = 3


class WrongTypeError(InputError, TypeError):
    """The data hold objects of a type that cannot be used: also a TypeError, which is what scikit-learn raises."""


class StoreError(InputError):
    """A store, a model or a run folder is missing, damaged, from the future, or not ours."""


class ResumeError(InputError):
    """A run folder belongs to other data or other settings than the ones given now."""


class NoRoomError(NfsDaskError, OSError):
    """A disk is full, or a quota used up: trying again is in vain until somebody makes room."""

    exit_code = 3

    def __str__(self) -> str:
        return f"{self.strerror}: '{self.filename}'; make room there, and try again"


class PlanError(NfsDaskError, ValueError):
    """A pass was refused before anything was read, because it would not fit."""

    exit_code = 4


class ClusterError(NfsDaskError, RuntimeError):
    """The cluster could not do the work: versions differ, the scheduler is gone, workers keep dying."""

    exit_code = 4


class NfsDaskWarning(UserWarning):
    """Base of the warnings this package gives."""


class DataWarning(NfsDaskWarning):
    """The data were usable, but not as they came."""


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known, where one that is known looks like it.

    >>> did_you_mean("lable", ["text", "label"]), did_you_mean("x", ["text", "label"])
    ("; did you mean 'label'?", '')
    """
    import difflib  # not before something has gone wrong

    near = difflib.get_close_matches(str(given), [name for name in known if isinstance(name, str)], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def warn(message: str, category: type[NfsDaskWarning] = NfsDaskWarning) -> None:
    """Warn at the first line outside this package, where the user can do something about it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(redacted(message), category, stacklevel=level)
