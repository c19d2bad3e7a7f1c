"""Programs beside the data do not run: not in commands, nor in any process that these start."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

NFS_DASK = Path(sysconfig.get_path("scripts"), "nfs-dask")
DOCUMENTS = "text,label\n" + "good word nice,ham\nbad thing ugly,spam\n" * 50
SCRIPT = """
import os
import nfs_dask as nfs
if __name__ == "__main__":
    nfs.ingest("mail.csv", "new.zarr", label_column="label", engine=nfs.DaskEngine(workers=1))
    assert "PYTHONSAFEPATH" not in os.environ
"""
TEXTS = ["--label-column", "label"]
STARTS = {
    "ingest with workers": ["ingest", "mail.csv", "new.zarr", *TEXTS, "--workers", "1"],
    "ingest by itself": ["ingest", "mail.csv", "new.zarr", *TEXTS, "--run", "run", "--detach"],
    "fit": ["fit", "m.zarr", "new", "-k", "2", "--workers", "1", "--no-cache"],
    "fit by itself": ["fit", "m.zarr", "new", "-k", "2", "--run", "run", "--detach"],
    "path": ["path", "m.zarr", "--workers", "1", "--no-cache"],
    "evaluate": ["evaluate", "model", "mail.csv", *TEXTS, "--workers", "1"],
    "predict": ["predict", "model", "mail.csv", "--workers", "1"],
    "plan": [
        "plan",
        "m.zarr",
        "--method",
        "multinomial",
        "-k",
        "2",
        "--kubernetes",
        "--model",
        "s3://b/m",
        "--run",
        "s3://b/r",
    ],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and a model."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "mail.csv").write_text(DOCUMENTS)
    for words in (["ingest", "mail.csv", "m.zarr", *TEXTS], ["fit", "m.zarr", "model", "-k", "2"]):
        subprocess.run([NFS_DASK, *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with data, and with a program of the name of each module that could be imported; none must have run."""
    for name in ("mail.csv", "m.zarr", "model"):
        (tmp_path / name).symlink_to(made / name)
    ran = tmp_path / "ran"
    for name in sys.stdlib_module_names | importlib.metadata.packages_distributions().keys():
        if name.isidentifier():
            (tmp_path / f"{name}.py").write_text(f"print({name!r}, file=open({str(ran)!r}, 'a'))\n")
    yield tmp_path
    assert not ran.exists(), ran.read_text()


def run(folder: Path, *words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=() if one.startswith("fit") else pytest.mark.slow) for one in STARTS]
)
def test_nothing_of_the_current_folder_is_imported(folder: Path, what: str) -> None:
    run(folder, NFS_DASK, *STARTS[what])
    if "--detach" in STARTS[what]:
        wait_until_finished(folder / "run")


def test_nor_by_a_driver_on_a_cluster(folder: Path, cluster: object) -> None:
    address = cluster.scheduler.address  # type: ignore[attr-defined]
    words = ["fit", "m.zarr", "new", "-k", "2", "--run", "run", "--detach", "--on-cluster", "--scheduler", address]
    run(folder, NFS_DASK, *words)
    wait_until_finished(folder / "run")


def test_nor_by_workers_of_a_script(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whose own folder is another one; what it starts itself later imports as it always did."""
    script = tmp_path_factory.mktemp("scripts") / "script.py"
    script.write_text(SCRIPT)
    run(folder, sys.executable, script)


def test_compiled_code_of_another_place_is_not_loaded(folder: Path, tmp_path: Path) -> None:
    """Numba reads its settings from the current folder; the code it keeps runs when it is loaded."""
    (folder / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'planted'}\n")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run([NFS_DASK, *STARTS["fit"]], cwd=folder, env=environment, check=True, capture_output=True)
    assert not (tmp_path / "planted").exists()


def wait_until_finished(run_folder: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while json.loads(run(run_folder.parent, NFS_DASK, "status", "run", "--json"))["state"] != "finished":
        assert time.monotonic() < deadline, (run_folder / "driver.log").read_text()
        time.sleep(0.5)
