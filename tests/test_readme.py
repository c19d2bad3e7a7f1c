"""What the README says can be pasted, works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from nfs_dask.cli.main import cli

README = Path(__file__).parent.parent / "README.md"


def blocks(language):
    # Fences come in pairs: the text between them is every second piece.
    fenced = re.split(r"^```", README.read_text(), flags=re.MULTILINE)[1::2]
    return [text for info, _, text in (piece.partition("\n") for piece in fenced) if info == language]


def test_the_first_two_shell_blocks_are_a_line_each_that_installs_and_runs():
    demo, tests = blocks("sh")[:2]
    assert demo.count("\n") == tests.count("\n") == 1
    assert demo.endswith("nfs-dask demo\n")
    assert tests.endswith("-m pytest\n")
    assert all(line.startswith("python3 -m venv ") for line in (demo, tests))


def test_the_python_and_then_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # one folder for both: the commands read what the Python has left
    for code in blocks("python"):
        exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("1500 500 ['ham' 'spam']\n[750 750]\nmultinomial, alpha 1: 500 values of k")
    gap = re.search(r"^-\d+\.\d+ (\d\S*)$", printed, flags=re.MULTILINE)
    assert gap is not None and float(gap[1]) < 1
    assert re.search(r"^\[('(ham|spam)' ?){5}\] \(5, 2\)$", printed, flags=re.MULTILINE)
    commands = [line for block in blocks("") for line in block.splitlines() if line.startswith("nfs-dask ")]
    assert len(commands) >= 3
    for command in commands:
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr, result.exception)
    used = {shlex.split(command)[1] for command in commands}
    assert used >= {"ingest", "info", "plan", "path", "fit", "evaluate", "predict"}
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 301


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_it_links_to_are_there(name):
    assert f"]({name})" in README.read_text()
    assert (README.parent / name).exists()
