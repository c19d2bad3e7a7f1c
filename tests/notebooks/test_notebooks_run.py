"""Every notebook runs from a clean kernel, warns of nothing, and is kept without outputs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from nfs_dask.cli.corpus import GeneratedCorpus

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120  # for each cell

COMPLAINT = re.compile(r"Traceback|\w*(Warning|Error)\b")


@pytest.fixture(autouse=True)
def clean_kernel(tmp_path, monkeypatch):
    """A kernel of this interpreter that shows every warning and knows no configuration of the person who runs it."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "clean", "language": "python"}))
    for name, value in {
        "JUPYTER_PATH": tmp_path / "jupyter",
        "JUPYTER_RUNTIME_DIR": tmp_path / "runtime",
        "JUPYTER_PREFER_ENV_PATH": "0",
        "IPYTHONDIR": tmp_path / "ipython",
        "PYTHONWARNINGS": "always",
    }.items():
        monkeypatch.setenv(name, str(value))


def read(path):
    return nbformat.read(path, as_version=4)


def run(notebook, folder):
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def texts(cell):
    """Everything a cell has put out, as text."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")


def complaints(notebook):
    return [text for cell in notebook.cells for text in texts(cell) if COMPLAINT.search(text)]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_is_kept_without_outputs(path):
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell.id for cell in code if cell.outputs or cell.execution_count is not None]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs_without_complaint_and_finds_the_planted_words(path, tmp_path):
    notebook = read(path)
    probe = "import json\nprint(json.dumps([[*m.get_feature_names_out()] for m in (model, presence, on_cluster)]))"
    notebook.cells.append(nbformat.v4.new_code_cell(probe))
    run(notebook, tmp_path)
    assert not complaints(notebook)
    corpus = GeneratedCorpus(20_480, 5_000, planted=10)
    planted = {word for code in range(2) for word in corpus.planted_words(code)}
    for found in json.loads(notebook.cells[-1].outputs[0].text):
        assert set(found) == planted
    said = "".join(text for cell in notebook.cells for text in texts(cell))
    assert "certified  True" in said
    assert "the model as it was: True" in said
    assert "the same model: True" in said
    assert not [*tmp_path.glob("*.zarr")]  # what it writes, it writes to a folder that it deletes


@pytest.mark.parametrize(
    "source", ["import warnings\nwarnings.warn('old', DeprecationWarning)", "print('ValueError: no')"]
)
def test_a_complaint_is_noticed(source, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    assert complaints(run(notebook, tmp_path))


def test_long_work_says_how_far_it_is_and_asks_for_no_library(tmp_path):
    """Without ipywidgets, which a kernel need not have, there are lines in place of a bar."""
    code = (
        "import sys, time\nsys.modules['ipywidgets'] = None  # as if it were not installed\n"
        "from nfs_dask import progress\nprogress.PATIENCE = 0.2\n"
        "with progress.Progress(2, 'counting') as shown:\n    time.sleep(0.6)\n    shown.advance(2)"
    )
    notebook = run(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), tmp_path)
    assert not complaints(notebook)
    assert "counting: 2 of 2 blocks" in "".join(texts(notebook.cells[0]))
