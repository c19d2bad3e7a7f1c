"""Each journey takes place in an empty folder, at a narrow and at a wide terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.journeys import Journey


@pytest.fixture(params=[80, 200], ids=lambda columns: f"{columns} columns")
def journey(tmp_path: Path, request: pytest.FixtureRequest) -> Journey:
    return Journey(tmp_path, request.param)
