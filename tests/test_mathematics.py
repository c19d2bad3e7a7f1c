"""The page about the mathematics is in step with the code and the README, and its examples print what they say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import yaml

import nfs_dask
from tests.test_readme import README, assert_printed, blocks, run_python

ROOT = README.parent
PAGE = ROOT / "docs" / "mathematics.md"
TEXT = PAGE.read_text()
BODY, _, WHERE = TEXT.partition("\n## 12. Where it is\n")
MODULE = re.compile(r"`(nfs_dask(?:\.\w+)+)`")
PAPERS = ("NFS20", "NFS", "SC", "HYB", "ERR")


def headings(page):
    """Sections by what a link to them says: the text in lower case, without marks, and dashes for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def rows(text, heading):
    """The cells of the table below a heading of the README, row by row, without its head."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("name", sorted(set(MODULE.findall(WHERE))))
def test_modules_of_the_table_are_there(name):
    module = importlib.import_module(name)
    assert module.__doc__


def test_modules_are_named_in_the_table_and_nowhere_else():
    assert len(set(MODULE.findall(WHERE))) > 50
    prose = re.sub(r"^```.*?^```", "", BODY, flags=re.DOTALL | re.MULTILINE)
    assert "nfs_dask." not in prose


def test_all_solvers_that_are_mathematics_are_in_the_table():
    solvers = {f"nfs_dask.solvers.{path.stem}" for path in (Path(nfs_dask.__file__).parent / "solvers").glob("*.py")}
    inner = {"__init__", "median_kernels"}  # a loop of medians
    named = set(MODULE.findall(WHERE))
    assert {name for name in solvers - named if name.rpartition(".")[2] not in inner} == set()


def test_sections_of_the_table_are_there():
    numbers = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", BODY, flags=re.MULTILINE))
    firsts = [row.split("|")[1] for row in WHERE.splitlines() if MODULE.search(row)]
    assert firsts and all(number in numbers for first in firsts for number in re.findall(r"\d+(?:\.\d+)?", first))
    assert {number.partition(".")[0] for number in numbers} == {str(i) for i in range(1, 12)}


def test_every_estimator_of_the_readme_is_on_the_page():
    estimators = [row[0].strip("`") for row in rows(README.read_text(), "What there is")]
    assert set(estimators) == {name for name in nfs_dask.__all__ if name.endswith(("NB", "Centroid", "Selector"))}
    assert [name for name in estimators if f"`{name}`" not in BODY] == []


def test_links_lead_to_sections_that_are_there():
    links = re.findall(r"\]\(([^)#]*)#([^)]+)\)", TEXT)
    assert (
        links
        and [
            (page, place)
            for page, place in links
            if place not in headings((PAGE.parent / page).resolve() if page else PAGE)
        ]
        == []
    )
    pages = set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TEXT))
    assert all((PAGE.parent / page).exists() for page in pages)


def test_the_readme_names_the_papers_and_leads_here():
    text = README.read_text()
    references = rows(text, "References")
    assert tuple(row[0] for row in references) == PAPERS
    named = {name for row in references for name in re.findall(r"`(\w+)`", row[2])}
    assert named <= set(nfs_dask.__all__)
    assert {row[0].strip("`") for row in rows(text, "What there is")} <= named
    assert "](docs/mathematics.md)" in text and "](CITATION.cff)" in text
    assert all(re.search(rf"\b{paper}\b", BODY) for paper in PAPERS)


def test_the_citation_has_the_papers_of_the_readme():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'license = "{citation["license"]}"' in project
    assert all(f'{{ name = "{author["name"]}" }}' in project for author in citation["authors"])
    papers = citation["references"]
    assert len(papers) == len(PAPERS)
    for paper, row in zip(papers, rows(README.read_text(), "References"), strict=True):
        for author in paper["authors"]:
            assert author.get("family-names", "") in row[1]
        if "year" in paper:
            assert paper["title"].lower() in row[1].lower() and str(paper["year"]) in row[1]
        assert all(identifier["value"] in row[1] for identifier in paper.get("identifiers", []))


def test_the_examples_print_what_they_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(blocks("python", PAGE)) == 6
    run_python(PAGE)
    assert_printed(PAGE, capsys.readouterr().out)
