"""What can be said of deploy/slurm without SLURM: options there are, and what the shared shell functions do."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from distributed.cli import dask_scheduler, dask_worker

from nfs_dask.cli.main import cli

SLURM = Path(__file__).parents[2] / "deploy" / "slurm"
SCRIPTS = [*sorted(SLURM.glob("*.sbatch")), SLURM / "resumable.sh"]

FAKE = """#!/bin/bash
if [ "$1" = status ]; then
    [ -e status ] && cat status
    exit
fi
echo "$@" > called
trap 'sleep 0.3; exit 143' TERM
for _ in $(seq "$TENTHS"); do sleep 0.1; done
exit 7
"""


def commands_of(text: str, program: str) -> list[list[str]]:
    """The words of each call of a program, up to where shell syntax begins that is no word."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = re.findall(rf"^(?:resumable \S+ )?({program} [^\n|&>]*)", joined, re.MULTILINE)
    found += re.findall(rf"^sbatch .*--wrap \"({program} [^\"]*)\"", joined, re.MULTILINE)
    return [shlex.split(re.sub(r"\$\{INTERFACE[^}]*\}|#.*", "", line)) for line in found]


@pytest.mark.parametrize("page", [*SCRIPTS, SLURM / "README.md"], ids=lambda page: page.name)
def test_commands_have_the_options_they_are_given(page: Path) -> None:
    text = page.read_text()
    for name, *words in (command[1:] for command in commands_of(text, "nfs-dask")):
        known = {option for parameter in cli.commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, (name, words)
    for name, *words in (command[1:] for command in commands_of(text, "dask")):
        main = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}[name]
        known = {option for parameter in main.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, (name, words)


def test_the_scripts_are_looked_at() -> None:
    assert len(commands_of((SLURM / "fit.sbatch").read_text(), "nfs-dask")) == 1
    assert [c[1] for c in commands_of((SLURM / "driver.sbatch").read_text(), "dask")] == ["scheduler"]
    assert [c[1] for c in commands_of((SLURM / "workers.sbatch").read_text(), "dask")] == ["worker"]
    assert len(commands_of((SLURM / "README.md").read_text(), "nfs-dask")) >= 4


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_shells_understand_the_scripts(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


def resumable(folder: Path, tenths: int) -> subprocess.Popen[str]:
    """A shell that runs a fake fit of so many tenths of a second in a run folder, and says how it ended."""
    (folder / "nfs-dask").write_text(FAKE)
    (folder / "nfs-dask").chmod(0o755)
    program = f'set -eu; . {SLURM}/resumable.sh; resumable run nfs-dask fit s m; echo "code=$code again=$again"'
    there = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "TENTHS": str(tenths)}
    return subprocess.Popen(["bash", "-c", program], cwd=folder, env=there, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("status", "called"),
    [
        (None, "fit s m --run run"),
        ('{"type": "status", "state": "interrupted"}', "fit s m --resume run --overwrite"),
        ('{"type": "status", "state": "lost"}', "fit s m --resume run --overwrite"),
        ('{"type": "status", "state": "finished"}', None),
    ],
)
def test_a_job_begins_goes_on_or_has_nothing_to_do(tmp_path: Path, status: str | None, called: str | None) -> None:
    if status is not None:
        (tmp_path / "status").write_text(status)
    out, _ = resumable(tmp_path, 0).communicate(timeout=30)
    if called is None:
        assert not (tmp_path / "called").exists() and out.endswith("code=0 again=\n")
    else:
        assert (tmp_path / "called").read_text().strip() == called and out == "code=7 again=\n"


@pytest.mark.parametrize(("signal", "again"), [("USR1", "yes"), ("TERM", "")])
def test_a_signal_is_passed_on_and_the_end_is_waited_for(tmp_path: Path, signal: str, again: str) -> None:
    shell = resumable(tmp_path, 200)
    deadline = time.monotonic() + 30
    while not (tmp_path / "called").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.1)
    subprocess.run(["kill", f"-{signal}", str(shell.pid)], check=True)
    out, _ = shell.communicate(timeout=30)
    assert out == f"code=143 again={again}\n"
