"""Every notebook runs from a clean kernel, warns of nothing, finds what is there, and is kept without outputs."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120  # for each cell

COMPLAINT = re.compile(r"Traceback|\w*(Warning|Error)\b")

# What libraries have deprecated among themselves, which Python shows to nobody unless it is asked to, as here.
AMONG_LIBRARIES = re.compile(
    r"^\S*/site-packages/(?!nfs_dask/)\S+:\d+: (\w*Deprecation|Pandas\d)Warning: .*\n(  .*\n?)?", re.MULTILINE
)

# What has to hold at the end of each notebook, of its own variables.
FOUND = {
    "1-quick-start": """
        assert set(model.get_feature_names_out()) == set(loaded.get_feature_names_out()) == {*GOOD, *BAD}
        assert model.certified_ and everything.provenance_["reused"]
        assert (model.coef_ == before).all()
        assert judged.accuracy > max(0.8, with_all.accuracy)
    """,
    "2-big-data": """
        assert set(model.get_feature_names_out()) == {f"{sign}{i}" for sign in ("meeting", "prize") for i in range(10)}
        assert path.reused and (alone.coef_ == model.coef_).all()
        assert 0 < kept_blocks < days.source.n_blocks
        assert (whole.coef_ == resumed.coef_).all()
        assert client.status == "closed" and not os.path.exists(FOLDER)
    """,
    "3-choosing-k": """
        assert len(gains) == 800 * 799 // 2
        assert abs(gains.max() - path.value[1]) < 1e-9 * gains.max() and path.bound[1] > 1.01 * gains.max()
        assert path.close.sum() > len(path.ks) // 2 and presence.certified.all()
        assert 20 <= one_error <= 160
    """,
    "4-genes": """
        assert set(genes) <= set(adata.var_names[:32])
        by_medians, all_genes = results["accuracy"][:2]
        assert by_medians > 0.95 and by_medians > all_genes + 0.1
        assert small.shape == (len(adata), int(k))
    """,
    "5-subject-and-body": """
        off = {name: one.to_json()["expected_calibration_error"] for name, one in found.items()}
        assert off["hybrid"] < 0.03 < 0.06 < off["naive Bayes"]
        assert abs(found["hybrid"].accuracy - found["naive Bayes"].accuracy) < 0.02
        assert (0 < sums.theta_[-2:]).all() and (sums.theta_[-2:] < 0.8).all()
        assert (model.theta_[-2:] < 0).any()
    """,
    "6-papers-in-small": """
        best_of_ours = runs[runs["selector"] == "sparse multinomial"]["accuracy"].max()
        assert best_of_ours > all_words + 0.02 and best_of_ours > best["accuracy"] - 0.02
        assert (gaps * ks <= 1).all() and off.max() < 0.01
        assert (shown.predicted < shown.measured).all()
    """,
}


@pytest.fixture(autouse=True)
def clean_kernel(tmp_path, monkeypatch):
    """A kernel of this interpreter that shows every warning and knows no configuration of the person who runs it."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "clean", "language": "python"}))
    for name in ("CLUSTER", "DATA", "FOLDER", "LABEL"):
        monkeypatch.delenv(f"NFS_DASK_{name}", raising=False)
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
    said = [AMONG_LIBRARIES.sub("", text) for cell in notebook.cells for text in texts(cell)]
    return [text for text in said if COMPLAINT.search(text)]


def drawings(notebook):
    """Cells that draw, and pictures that came of them."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and re.search(r"\.plots\.|plt\.", cell.source)]
    return cells, [output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})]


def test_there_are_notebooks_and_the_page_lists_them():
    assert sorted(FOUND) == [path.stem for path in NOTEBOOKS]
    page = (FOLDER.parent / "docs" / "notebooks.md").read_text()
    assert [name for name in FOUND if f"(../notebooks/{name}.ipynb)" not in page] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_without_outputs(path):
    notebook = read(path)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not [cell.id for cell in code if cell.outputs or cell.execution_count is not None]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_without_complaint_and_finds_what_is_there(path, tmp_path):
    notebook = read(path)
    notebook.cells.append(nbformat.v4.new_code_cell(textwrap.dedent(FOUND[path.stem])))
    working = tmp_path / "working"
    working.mkdir()
    run(notebook, working)
    assert not complaints(notebook)
    drawing, pictures = drawings(notebook)
    assert len(pictures) == len(drawing)
    assert not [*working.iterdir()]  # what it writes, it writes to a folder that it deletes


@pytest.mark.parametrize(
    "source", ["import warnings\nwarnings.warn('old', DeprecationWarning)", "print('ValueError: no')"]
)
def test_a_complaint_is_noticed(source, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    assert complaints(run(notebook, tmp_path))


def test_what_libraries_deprecate_among_themselves_is_no_complaint():
    theirs = "/venv/lib/python3.13/site-packages/{}/compat.py:249: Pandas4Warning: The 'future' is old.\n  and not x\n"
    ours = "/tmp/ipykernel_1/2.py:1: DeprecationWarning: old\n"
    for text, complained in {
        theirs.format("anndata"): [],
        theirs.format("anndata") + ours: [ours],
        theirs.format("nfs_dask"): [theirs.format("nfs_dask")],
        theirs.format("anndata").replace("Pandas4", "Future"): [theirs.format("anndata").replace("Pandas4", "Future")],
    }.items():
        cell = nbformat.v4.new_code_cell("", outputs=[nbformat.v4.new_output("stream", name="stderr", text=text)])
        assert complaints(nbformat.v4.new_notebook(cells=[cell])) == complained


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
