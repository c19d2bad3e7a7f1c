"""What a release is made of says the same everywhere: the version, what it needs, and on what it is tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import nfs_dask

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = {"dask": "dask-core"}  # names there, where they differ


def loaded(path: str) -> dict:
    return yaml.safe_load((ROOT / path).read_text())


def test_the_version_is_one_and_no_version_of_developers() -> None:
    version = nfs_dask.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1] == version
    assert loaded("CITATION.cff")["version"] == version
    assert loaded("deploy/conda/recipe.yaml")["context"]["version"] == version


def test_the_page_of_a_release_leads_to_the_source_and_the_documentation() -> None:
    assert {"Source", "Issues", "Documentation", "Changelog"} <= PROJECT["urls"].keys()
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())


def test_the_conda_recipe_needs_what_the_project_needs() -> None:
    recipe = loaded("deploy/conda/recipe.yaml")
    parts = [re.fullmatch(r"([\w-]+)(>=[\d.]+)", one).groups() for one in PROJECT["dependencies"]]
    wanted = [f"{CONDA.get(name, name)} {floor}" for name, floor in parts]
    assert recipe["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *wanted]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]


def test_all_pythons_that_are_promised_are_tested() -> None:
    matrix = loaded(".github/workflows/ci.yml")["jobs"]["checks"]["strategy"]["matrix"]["python"]
    assert matrix[0] == PROJECT["requires-python"].removeprefix(">=")
    assert matrix == [f"3.{minor}" for minor in range(11, 11 + len(matrix))]
    own = re.search(r'PYTHONS="\$\{PYTHONS:-([\d. ]+)', (ROOT / ".ci/run").read_text())[1].split()
    assert own == matrix[: len(own)]


def test_a_release_is_tried_before_it_is_published_and_named_by_its_tag() -> None:
    jobs = loaded(".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    steps = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    for part in ("_version.py", "twine check --strict", "nfs-dask demo"):
        assert part in steps


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_issue_forms_ask_for_what_is_needed(name: str) -> None:
    form = loaded(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert form["name"] and form["description"]
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)
