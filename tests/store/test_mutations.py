"""Whatever is wrong with a store, a model or a run: the right answer or an error of ours, soon and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import mutating


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "count"), [(1, 20), *(pytest.param(n, 1000, marks=pytest.mark.slow) for n in range(2, 6))]
)
def test_mutations_end_well(seed: int, count: int, tmp_path: Path) -> None:
    command = [sys.executable, mutating.__file__, str(tmp_path), str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []
