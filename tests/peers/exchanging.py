"""scikit-learn's own tests, run with other classes in the place of some of theirs. Nothing of them is kept."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

FIXTURES = """
import numpy as np
import pytest


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def global_dtype():
    return np.float64
"""


def exchanged(source: str, names: dict[str, str]) -> str:
    """A test module in which some names mean other classes, from behind its last import on."""
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = source.splitlines()
    last = max(node.end_lineno or 0 for node in imports)
    exchanges = (f"from tests.peers.stand_ins import {ours} as {theirs}" for theirs, ours in names.items())
    return "\n".join([*lines[:last], *exchanges, *lines[last:]])


def outcomes(module: str, names: dict[str, str], folder: Path) -> dict[str, str]:
    """What becomes of each test of a module of scikit-learn: "passed", "skipped", or what went wrong."""
    found = find_spec(module)
    assert found is not None and found.origin is not None, f"{module} is not installed"
    test = folder / "test_theirs.py"
    test.write_text(exchanged(Path(found.origin).read_text(encoding="utf-8"), names), encoding="utf-8")
    (folder / "conftest.py").write_text(FIXTURES)
    report = folder / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        f"--junitxml={report}",
    ]
    command += ["-c", os.devnull, f"--rootdir={folder}", "-W", "ignore", str(test)]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return {case.attrib["name"]: _outcome(case) for case in ET.parse(report).iter("testcase")}


def _outcome(case: ET.Element) -> str:
    for child in case:
        if child.tag in ("failure", "error"):
            return child.attrib.get("message", child.tag)
        if child.tag == "skipped":
            return "skipped"
    return "passed"
