"""scikit-learn's own tests of its estimators hold for ours in their place, but for listed differences."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn
from packaging.version import Version

from tests.peers.differences import EXCHANGES, Exchange
from tests.peers.exchanging import exchanged, outcomes

NEWEST = Version(sklearn.__version__) >= Version("1.9")  # what differs, and is listed, changes with their tests

each = pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda one: one.module.rpartition(".")[2])


@pytest.mark.slow
@pytest.mark.timeout(900)
@each
def test_theirs_pass_with_ours(exchange: Exchange, tmp_path: Path) -> None:
    found = outcomes(exchange.module, exchange.classes, tmp_path)
    failed = {case: said for case, said in found.items() if said not in ("passed", "skipped")}
    names = {case.partition("[")[0] for case in failed}
    assert "passed" in found.values()
    unlisted = {case: said for case, said in failed.items() if case.partition("[")[0] not in exchange.differences}
    assert not unlisted or not NEWEST
    if NEWEST:
        assert not exchange.differences.keys() - names, "these pass, and are listed as different"
    else:
        assert len(unlisted) <= len(found) // 10, unlisted


@pytest.mark.skipif(not NEWEST, reason="what is listed are tests of the newest scikit-learn")
@each
def test_what_is_listed_is_there(exchange: Exchange) -> None:
    spec = find_spec(exchange.module)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    tests = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert not exchange.differences.keys() - tests
    for theirs, ours in exchange.classes.items():
        assert f"from tests.peers.stand_ins import {ours} as {theirs}" in exchanged(source, exchange.classes)
        assert theirs in source


def test_classes_are_exchanged_behind_the_imports() -> None:
    source = '"""Doc."""\nimport a\nfrom b import (\n    C,\n    D,\n)\n\nX = [C, D]\n'
    made = exchanged(source, {"C": "E"})
    assert made.splitlines()[5:8] == [")", "from tests.peers.stand_ins import E as C", ""]
    names = {node.name for node in ast.walk(ast.parse(made)) if isinstance(node, ast.alias)}
    assert names == {"a", "C", "D", "E"}
