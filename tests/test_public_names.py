"""Public names are promises: a change of one is a change of this file, and of CHANGELOG.md."""

from __future__ import annotations

from tests.helpers.places import GOLDEN
from tests.helpers.public_names import public_names


def test_public_names_are_those_that_were_promised() -> None:
    """What is new is added by `python -m tests.helpers.public_names > tests/golden/public_names.txt`."""
    assert public_names() == (GOLDEN / "public_names.txt").read_text().splitlines()
