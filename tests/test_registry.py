"""The registry is the only list of methods: what it says is so, and what it lists is everywhere."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

import nfs_dask as nfs
from nfs_dask.estimators.loading import make_estimator
from nfs_dask.models.families import Family
from nfs_dask.registry import METHODS, family_of, methods_of_paths, options_of_all
from tests.helpers.places import ROOT
from tests.helpers.toy_method import FREQUENT, FrequentNB

each = pytest.mark.parametrize("name", METHODS)


@each
def test_parameters_are_those_of_the_estimator(name: str) -> None:
    method = METHODS[name]
    signature = set(inspect.signature(method.estimator_class()).parameters) - set(method.fixed)
    assert method.parameters <= signature
    idle = {"l2": {"covariance", "variance_floor"}, "l1": {"covariance", "variance_floor"}}.get(name, set())
    assert signature - method.parameters == idle


@each
def test_estimators_can_do_what_the_registry_says(name: str) -> None:
    estimator = make_estimator(name)
    assert hasattr(estimator, "rank") or METHODS[name].instead_of_paths is not None
    assert hasattr(estimator, "recipe")
    assert isinstance(family_of(name), Family)


def test_options_of_a_parameter_are_one() -> None:
    options = options_of_all()
    assert len({option.parameter for option in options}) == len(options)
    assert len({option.name for option in options}) == len(options)


@each
def test_the_readme_has_a_row_for_every_method(name: str) -> None:
    method = METHODS[name]
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if f"`{name}`" in line and line[0] == "|"]
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[0] == f"`{method.estimator.rpartition(':')[2]}`"
    assert cells[2:] == [method.what, method.certain]


# A method that is added


SCRIPT = """
import json, sys
from nfs_dask.registry import METHODS
from tests.helpers.toy_method import FREQUENT
METHODS["frequent"] = FREQUENT
from click.testing import CliRunner
from nfs_dask.cli.main import cli

for line in json.loads(sys.argv[1]):
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    print(json.dumps(done.stdout))
"""


Mail = tuple[Any, Any, Path]


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Mail:
    rng = np.random.default_rng(0)
    spam = np.arange(120) % 2
    X = sp.csr_array(rng.poisson(rng.gamma(0.4, size=(2, 30))[spam]))
    y = np.array(["ham", "spam"])[spam]
    store = tmp_path_factory.mktemp("mail") / "mail.zarr"
    nfs.ingest(X, store, labels=y)
    return X, y, store


@pytest.fixture(scope="module")
def printed(mail: Mail) -> dict[str, str]:
    """What commands print, in a process that has the method before it has the commands; by how these begin."""
    store = mail[2]
    lines: dict[str, tuple[Any, ...]] = {
        **{f"{name} --help": () for name in ("fit", "path", "plan")},
        f"fit {store} {store.parent}/by.model": ("--method", "frequent", "-k", 5, "--json"),
        f"fit {store} {store.parent}/rarest.model": ("--method", "frequent", "-k", 3, "--rarest"),
        f"info {store.parent}/rarest.model": ("--json",),
        f"path {store}": ("--method", "frequent", "--ks", "1,5", "--json"),
        f"plan {store}": ("--method", "frequent", "-k", 5, "--json"),
    }
    given = json.dumps([[*begin.split(), *map(str, options)] for begin, options in lines.items()])
    done = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    said = map(json.loads, done.stdout.splitlines())
    return {begin.replace(f"{store.parent}/", ""): one for begin, one in zip(lines, said, strict=True)}


def test_an_added_method_is_everywhere(
    mail: Mail, printed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, store = mail
    monkeypatch.setitem(METHODS, "frequent", FREQUENT)
    assert "frequent" in methods_of_paths()
    best = np.argsort(-X.sum(axis=0), kind="stable")
    model = FrequentNB(k=5).fit(X, y)
    assert set(model.get_support(indices=True)) == set(best[:5])

    path = nfs.path(X, "frequent", y=y)
    assert path.value[4] == X.sum(axis=0)[best[:5]].sum()
    assert set(path.support(5)) == set(best[:5])
    assert path.choose("elbow") and path.choose("error")

    table = nfs.cross_validate(X, y, method="frequent", ks=[5, 10], folds=3)
    assert table.scores(k=5, alpha=1.0).tolist() == cross_val_score(FrequentNB(k=5), X, y, cv=3).tolist()

    dataset = nfs.open_dataset(store)
    assert nfs.plan(dataset, FrequentNB(k=5)).peak_nbytes > 0
    model.save(tmp_path / "frequent.model")
    again = nfs.load_model(tmp_path / "frequent.model")
    assert isinstance(again, FrequentNB)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))

    assert json.loads(printed["fit mail.zarr by.model"])["method"] == "frequent"
    assert nfs.load_model(store.parent / "by.model").predict(X).tolist() == model.predict(X).tolist()


def test_an_added_method_has_options_help_a_path_and_a_plan(printed: dict[str, str]) -> None:
    helps = [printed[f"{name} --help"] for name in ("fit", "path", "plan")]
    assert all(re.search(r"--method \[[^]]*frequent", text) for text in helps)
    assert json.loads(printed["path mail.zarr"])["method"] == "frequent"
    assert json.loads(printed["plan mail.zarr"])["k"] == 5


def test_an_added_option_is_taken(mail: Mail, printed: dict[str, str]) -> None:
    X, told = mail[0], printed["info rarest.model"]
    assert "--rarest" in printed["fit --help"]
    parameters = json.loads(told)["parameters"]
    assert (parameters["rarest"], parameters["k"]) == (True, 3)
    rarest = np.sort(np.argsort(X.sum(axis=0), kind="stable")[:3])
    shown = json.loads(told)["top_features"]
    assert {name for pairs in shown.values() for name, _ in pairs} <= {f"x{i}" for i in rarest}
