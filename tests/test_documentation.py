"""The pages of the site run and say what is printed, name what is there, and know every public name."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nfs_dask
from nfs_dask.cli.main import cli
from tests.test_readme import assert_printed, blocks, run_commands, run_python

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts and page.name != "gallery.md"]
NAMES = [name for name in nfs_dask.__all__ if name != "__version__"]
SHOWN_BY_EXAMPLE = """
    SparseMultinomialNB SparseBernoulliNB SparseCentroid HybridNB ErrorRateSelector TextVectorizer
    ingest open_dataset plan path cross_validate evaluate load_model predict_error accuracy_coverage
""".split()


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A module of those that make the pages, by its name."""
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return importlib.import_module


def test_the_tutorial_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorial.md"
    run_python(page)
    used, shown = run_commands(page)
    assert used == ["ingest", "path", "fit", "evaluate", "predict"]
    assert_printed(page, capsys.readouterr().out + shown)


def test_the_page_about_crashes_runs_and_says_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "resuming.md"
    run_python(page)
    used, shown = run_commands(page)
    assert used == ["fit", "info", "fit"]
    assert_printed(page, capsys.readouterr().out + shown)


@pytest.mark.parametrize("name", ["memory.md", "clusters.md"])
def test_the_python_of_pages_runs_and_says_what_is_printed(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_python(DOCS / name)
    assert_printed(DOCS / name, capsys.readouterr().out)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_with_python_is_run_by_a_test(page):
    if blocks("python", page):
        tests = [test.read_text() for test in Path(__file__).parent.glob("test_*.py")]
        assert any(f'"{page.name}"' in test or f"docs/{page.name}" in test for test in tests)


def test_commands_of_pages_have_the_options_they_are_given():
    for page in PAGES:
        for line in "\n".join(blocks("", page) + blocks("sh", page)).splitlines():
            if not line.startswith("nfs-dask "):
                continue
            name, *words = line.split("#")[0].split()[1:]
            known = {option for parameter in cli.commands[name].params for option in parameter.opts} | {"--help"}
            given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert given <= known, (page.name, line, given - known)


@pytest.mark.parametrize("name", NAMES)
def test_each_public_name_is_described_with_all_its_parameters(name):
    value = getattr(nfs_dask, name)
    described = inspect.getdoc(value)
    assert described and described.splitlines()[0].endswith((".", "?")), "a first sentence is missing"
    if isinstance(value, ModuleType) or (inspect.isclass(value) and issubclass(value, Exception)):
        return
    missing = parameters_of(value) - told_parameters(described)
    assert not missing, f"not in the section Parameters: {sorted(missing)}"
    if inspect.isfunction(value):
        assert "Returns\n-------" in described


@pytest.mark.parametrize("name", SHOWN_BY_EXAMPLE)
def test_what_everybody_needs_has_an_example(name):
    assert "Examples\n--------" in inspect.getdoc(getattr(nfs_dask, name))
    assert ">>> " in inspect.getdoc(getattr(nfs_dask, name)).partition("Examples\n--------")[2]


def parameters_of(value: Any) -> set[str]:
    return {name for name in inspect.signature(value).parameters if name != "self"}


def told_parameters(described: str) -> set[str]:
    """Names in the section Parameters: lines that are not indented, up to the next heading."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---+$|\Z)", described, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\S[^\n]*$", section[1], re.MULTILINE) if section else []
    return {name.strip().lstrip("*") for line in lines for name in line.partition(" : ")[0].split(",")}


def test_links_of_pages_lead_to_what_is_there(extension):
    link_of_markdown = extension("links").LINK
    for page in [*PAGES, ROOT / "README.md"]:
        for link in link_of_markdown.finditer(page.read_text()):
            target = (page.parent / link["target"]).resolve()
            made = target.is_relative_to(DOCS / "reference") and target.suffix == ".rst"  # when the site is built
            assert target.exists() or made, f"{page.name}: {link[0]}"


def test_links_on_the_site_are_those_of_github_seen_from_its_pages(extension):
    on_the_site = extension("links").on_the_site
    readme, texts, index = ROOT / "README.md", DOCS / "texts.md", DOCS / "index.md"
    said = "[a](docs/texts.md#regions) [b](deploy/README.md) [c](CITATION.cff) [d](deploy) `x[0](k)` [e](none.md)"
    changed = "[a](texts.md#regions) [b](deploying.md) [c](../CITATION.cff) [d](deploying.md) `x[0](k)` [e](none.md)"
    assert on_the_site(said, readme, index) == changed
    assert on_the_site("[a](../README.md#references) [b](../nfs_dask)", texts, texts) == "[a](index.md#references) b"


def test_tables_of_contents_take_all_pages(extension, tmp_path):
    listed = extension("listed_pages")
    assert listed.pages_of(":others:\n\nHow many? <choosing>\nplots\n") == ["choosing", "plots"]
    (tmp_path / "index.md").write_text("```{pages}\n:hidden:\n\nhowto\n```\n")
    (tmp_path / "howto.md").write_text("```{pages}\n:others:\n\nA <a>\nmissing\n```\n")
    for name in ("a", "new"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    assert listed.unlisted(tmp_path) == ["new"]


def results(pages: dict[str, str]) -> set[str]:
    """What calls return has pages, too."""
    return {name for name in pages if name.startswith("result-")}


def test_the_reference_has_a_page_for_each_public_name_and_each_command(extension):
    reference = extension("reference_pages")
    pages = reference.python_pages()
    assert set(NAMES) <= set(pages) == set(reference.public_names()) | {"index", *results(pages)}
    assert len({name.lower() for name in pages}) == len(pages)  # as there are disks where these are one file
    assert ".. automethod:: predict_proba" in pages["SparseBernoulliNB"]
    assert all(f" <{name}>`" in pages["index"] for name in pages if name != "index")
    commands = reference.command_pages()
    assert set(commands) == {"index", *cli.commands}
    assert "   --label-column NAME" in commands["fit"] and "nfs-dask fit mail.zarr spam.model" in commands["fit"]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-b", "html", "-d", tmp_path / "trees", DOCS]
    subprocess.run([*command, tmp_path / "html"], check=True, cwd=ROOT)
    built = (tmp_path / "html" / "mathematics.html").read_text()
    assert built.count('class="math notranslate nohighlight"') > 100
    assert not re.search(r"\$\$|\$\\", re.sub(r"<(pre|code)\b.*?</\1>", "", built, flags=re.DOTALL))
