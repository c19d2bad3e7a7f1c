"""Test files are imported by their bare names, so no two of them may share one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_every_file_has_a_name_of_its_own() -> None:
    names = Counter(path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, n in names.items() if n > 1] == []
