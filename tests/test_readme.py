"""What the README and the pages of docs/ say can be pasted, works, and prints what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from nfs_dask.cli.main import cli

README = Path(__file__).parent.parent / "README.md"
TEXTS = README.parent / "docs" / "texts.md"
FROM_SCIKIT_LEARN = README.parent / "docs" / "from-scikit-learn.md"
CENTERS = README.parent / "docs" / "centers.md"
HYBRID = README.parent / "docs" / "hybrid.md"
CHOOSING = README.parent / "docs" / "choosing.md"
EXPLAINING = README.parent / "docs" / "explaining.md"
PLOTS = README.parent / "docs" / "plots.md"
REPORT = README.parent / "docs" / "report.md"
LEAVING = README.parent / "docs" / "leaving.md"


def blocks(language, page=README):
    # Fences come in pairs: the text between them is every second piece.
    fenced = re.split(r"^```", page.read_text(), flags=re.MULTILINE)[1::2]
    return [text for info, _, text in (piece.partition("\n") for piece in fenced) if info == language]


def run_python(page):
    for code in blocks("python", page):
        exec(compile(code, str(page), "exec"), {})


def run_commands(page):
    """All commands of a page, and what they printed."""
    commands = [line for block in blocks("", page) for line in block.splitlines() if line.startswith("nfs-dask ")]
    printed = ""
    for command in commands:
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.stderr, result.exception)
        printed += result.stdout
    return [shlex.split(command)[1] for command in commands], printed


def assert_printed(page, printed):
    """What a page shows as printed was printed, spaces at the ends of lines aside."""
    lines = {line.rstrip() for line in printed.splitlines()}
    shown = [line.rstrip() for block in blocks("text", page) for line in block.splitlines()]
    assert shown and not [line for line in shown if line not in lines]


def test_the_first_two_shell_blocks_are_a_line_each_that_installs_and_runs():
    demo, tests = blocks("sh")[:2]
    assert demo.count("\n") == tests.count("\n") == 1
    assert demo.endswith("nfs-dask demo\n")
    assert tests.endswith("-m pytest\n")
    assert all(line.startswith("python3 -m venv ") for line in (demo, tests))


def test_the_python_and_then_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # one folder for both: the commands read what the Python has left
    run_python(README)
    printed = capsys.readouterr().out
    assert "\n1500 500 ['ham' 'spam']\n[750 750]\nmultinomial, alpha 1: 500 values of k" in printed
    gap = re.search(r"^-\d+\.\d+ (\d\S*)$", printed, flags=re.MULTILINE)
    assert gap is not None and float(gap[1]) < 1
    assert re.search(r"^\[('(ham|spam)' ?){5}\] \(5, 2\)$", printed, flags=re.MULTILINE)
    used, shown = run_commands(README)
    assert set(used) >= {"ingest", "info", "plan", "path", "fit", "evaluate", "predict", "explain"}
    assert_printed(README, printed + shown)
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 301


@pytest.mark.filterwarnings("default::nfs_dask.errors.DataWarning")  # they are what the page is about
def test_the_page_about_texts_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    run_python(TEXTS)
    used, shown = run_commands(TEXTS)
    assert set(used) >= {"ingest", "info", "fit", "evaluate", "predict"}
    assert_printed(TEXTS, capsys.readouterr().out + shown)


def test_the_page_about_centers_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(CENTERS)
    used, shown = run_commands(CENTERS)
    assert set(used) >= {"plan", "path", "fit", "info", "evaluate", "predict"}
    assert_printed(CENTERS, capsys.readouterr().out + shown)


def test_the_page_about_the_hybrid_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(HYBRID)
    used, shown = run_commands(HYBRID)
    assert set(used) >= {"plan", "fit", "info", "evaluate", "predict"}
    assert_printed(HYBRID, capsys.readouterr().out + shown)


def test_the_page_about_choosing_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(CHOOSING)
    used, shown = run_commands(CHOOSING)
    assert set(used) >= {"path", "fit", "evaluate"}
    assert_printed(CHOOSING, capsys.readouterr().out + shown)


def test_the_page_about_explaining_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(EXPLAINING)
    used, shown = run_commands(EXPLAINING)
    assert set(used) == {"explain"}
    assert_printed(EXPLAINING, capsys.readouterr().out + shown)
    assert "cheap</mark>" in (tmp_path / "why.html").read_text()


def test_the_page_about_plots_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    run_python(PLOTS)
    named = set(re.findall(r"\w+\.png", PLOTS.read_text()))
    assert named == {file.name for file in tmp_path.glob("*.png")}
    assert_printed(PLOTS, capsys.readouterr().out)
    matplotlib.pyplot.close("all")


def test_the_page_about_leaving_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    run_python(LEAVING)
    used, shown = run_commands(LEAVING)
    assert set(used) >= {"features", "sql"}
    assert_printed(LEAVING, capsys.readouterr().out + shown)


def test_the_page_about_scikit_learn_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(FROM_SCIKIT_LEARN)
    assert_printed(FROM_SCIKIT_LEARN, capsys.readouterr().out)


def test_names_on_the_page_about_scikit_learn_are_there():
    """Those of tables: of the package, and parameters of its estimators and functions."""
    import nfs_dask as nfs

    cells = [line.split("|")[2] for line in FROM_SCIKIT_LEARN.read_text().splitlines() if line.startswith("| `")]
    codes = [code for cell in cells for code in re.findall(r"`([^`]+)`", cell) if not code.startswith("--")]
    assert all(hasattr(nfs, name) for code in codes for name in re.findall(r"nfs\.(\w+)", code))
    there = (README.parent / "tests" / "golden" / "public_names.txt").read_text()
    for name in {name for code in codes for name in re.findall(r"(?<![\w-])(\w+)=", code)}:
        assert re.search(rf"[(, ]{name}=", there), name


def test_the_page_about_reports_runs(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    run_python(REPORT)
    used, _ = run_commands(REPORT)
    assert set(used) == {"fit", "report"}
    named = set(re.findall(r"\w+\.html", REPORT.read_text()))
    assert named == {file.name for file in tmp_path.glob("*.html")}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_what_the_page_about_leaving_says_of_mlflow_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mlflow", reason="mlflow is large, and no test needs it but this: pip install mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    exec(compile(blocks("python", LEAVING)[0], str(LEAVING), "exec"), {})
    scope = {}
    for code in blocks("python mlflow", LEAVING):
        exec(compile(code, str(LEAVING), "exec"), scope)
    assert capsys.readouterr().out.endswith("['liked', 'hated']\n")


@pytest.mark.parametrize(
    "name",
    [
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/texts.md",
        "docs/centers.md",
        "docs/hybrid.md",
        "docs/choosing.md",
        "docs/explaining.md",
        "docs/plots.md",
        "docs/report.md",
        "docs/leaving.md",
        "docs/from-scikit-learn.md",
        "docs/mathematics.md",
        "docs/design.md",
    ],
)
def test_pages_it_links_to_are_there(name):
    assert f"]({name})" in README.read_text()
    assert (README.parent / name).exists()
