"""Imports point downward, libraries stay where they belong, and importing the package is cheap."""

from __future__ import annotations

import ast
import collections
import functools
import graphlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nfs_dask
from nfs_dask.registry import METHODS

PACKAGE = Path(nfs_dask.__file__).parent

MAP = (PACKAGE.parent / "CONTRIBUTING.md").read_text()


def rows_of(heading):
    """The cells of a table of the map, without its head."""
    lines = iter(MAP[MAP.index(heading) :].splitlines()[2:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in itertools.takewhile(str.strip, lines)]


LAYERS = [set(re.findall(r"`(\w+)`", parts)) for _, parts, _ in rows_of("| layer |")]
DASK = {
    "cli/on_cluster.py",
    "cluster/addresses.py",
    "cluster/examine.py",
    "cluster/finding.py",
    "cluster/local_cluster.py",
    "cluster/warming.py",
    "cluster/worker_settings.py",
    "documents/in_memory.py",
    "engine/distributed.py",
    "engine/on_workers.py",
    "engine/scheduler_metrics.py",
    "graphs.py",
    "prediction/column_selection.py",
    "prediction/lazy_frames.py",
    "sources/dask_matrices.py",
}
SKLEARN = {
    "export/scikit_pipeline.py",
    "ingestion/stop_lists.py",
    "selection/splitters.py",
    "sources/svmlight.py",
}
HOMES = {
    "jinja2": lambda file: file.startswith("reports/"),
    "matplotlib": lambda file: file.startswith("plots/"),
    "zarr": lambda file: file.startswith("store/") or file == "sources/zarr.py",
    "dask": DASK.__contains__,
    "distributed": DASK.__contains__,
    "sklearn": lambda file: file.startswith("estimators") or file in SKLEARN,
}


def name_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {name_of(path) for path in FILES}
INSIDE = [path for path in FILES if path != PACKAGE / "__init__.py"]


@functools.cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports_of(path):
    """Every module a file imports, at its top or inside functions, with its line."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.append((submodule if submodule in MODULES else node.module, node.lineno))
    return found


def part_of(module):
    """The part of the package a module is in: a folder, or a single file."""
    return module.split(".")[1]


def layer_of(module):
    return next(i for i, layer in enumerate(LAYERS) if part_of(module) in layer)


def identify(path):
    return path.relative_to(PACKAGE).as_posix()


def test_the_map_has_every_part_once():
    parts = [part for layer in LAYERS for part in layer]
    assert sorted(parts) == sorted({part_of(name) for name in MODULES - {"nfs_dask"}})


def test_the_map_finds_every_method():
    found = {row[0].strip("`"): row[1:] for row in rows_of("| method |")}
    assert found.keys() == METHODS.keys()
    for name, places in found.items():
        assert all((PACKAGE / f"{place.strip('`')}.py").is_file() for place in places), places
        assert METHODS[name].plain.startswith(f"nfs_dask.{places[-1].strip('`').replace('/', '.')}:")


def test_modules_have_names_of_their_own():
    """But for methods and commands, which are called the same wherever they are."""
    stems = {"multinomial", "bernoulli", "naive_bayes", "centers", "hybrid", "predicted_error", "ingest", "plan"}
    names = collections.Counter(path.stem for path in INSIDE if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} <= stems


def test_classes_have_names_of_their_own():
    names = collections.Counter(
        node.name for path in FILES for node in nodes_of(path) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("path", INSIDE, ids=identify)
def test_imports_point_downward(path):
    me = name_of(path)
    for module, line in imports_of(path):
        if module.split(".")[0] != "nfs_dask":
            continue
        where = f"{identify(path)}:{line} imports {module}"
        assert module != "nfs_dask", f"{where}: the package root is for users"
        assert part_of(module) == part_of(me) or layer_of(module) < layer_of(me), f"{where}, which is not below it"


def test_no_module_reaches_itself():
    edges = {name_of(path): {module for module, _ in imports_of(path)} & MODULES for path in INSIDE}
    graphlib.TopologicalSorter(edges).prepare()  # raises CycleError, naming the modules


@pytest.mark.parametrize("library", HOMES)
def test_libraries_stay_where_they_belong(library):
    strays = [
        f"{identify(path)}:{line}"
        for path in FILES
        if not HOMES[library](identify(path))
        for module, line in imports_of(path)
        if module.split(".")[0] == library
    ]
    assert not strays


@pytest.mark.parametrize("name", [*nfs_dask.__all__])
def test_public_names_are_there(name):
    assert getattr(nfs_dask, name) is not None
    assert name in dir(nfs_dask)


def test_no_public_name_hides_a_module():
    modules = {part_of(name) for name in MODULES - {"nfs_dask"}}
    assert not modules & set(nfs_dask.__all__), "importing the module would put it in the place of the name"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'ingets'"):
        _ = nfs_dask.ingets


HEAVY = (
    "distributed",
    "dask",
    "sklearn",
    "pandas",
    "pyarrow",
    "anndata",
    "sparse",
    "zarr",
    "numba",
    "rich",
    "matplotlib",
)
LEAN = ("distributed", "matplotlib", "sklearn", "pandas", "pyarrow", "anndata", "h5py", "sparse", "IPython")


LIGHT = ["import nfs_dask", "dir(nfs_dask)", "import nfs_dask.plots", "import nfs_dask.cli.main"]
WORKERS = [
    "import nfs_dask.engine.serial",
    "import nfs_dask.statistics.counts",
    "import nfs_dask.dataset",
    "import nfs_dask.prediction.scoring",
    "import nfs_dask.prediction.column_selection",
    "import nfs_dask.prediction.reader",
    "import nfs_dask.prediction.vectorizing",
]
SCRIPT = """
import json, sys
for statement in json.loads(sys.argv[1]):
    exec(statement)
    print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*statements):
    """What is loaded after each statement, and those before it, in one new interpreter."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(statements)]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    return {statement: set(json.loads(line)) for statement, line in zip(statements, lines, strict=True)}


@pytest.fixture(scope="module")
def loaded():
    after = modules_after(*LIGHT, *WORKERS)
    return {statement: {name.split(".")[0] for name in names} for statement, names in after.items()}


@pytest.mark.parametrize("statement", LIGHT)
def test_importing_the_package_loads_nothing_heavy(statement, loaded):
    assert not loaded[statement] & set(HEAVY)


@pytest.mark.parametrize("statement", WORKERS)
def test_what_runs_on_workers_is_lean(statement, loaded):
    assert not loaded[statement] & set(LEAN)


COMMANDS = """
import sys
from nfs_dask.cli.main import cli
for command in ("ingest mail.csv --label-column folder mail.zarr", "fit mail.zarr spam.model -k 2"):
    cli(command.split(), standalone_mode=False)
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


NOT_FITTING = (  # naive Bayes, from a store
    "nfs_dask.engine.distributed",
    "nfs_dask.cluster.finding",
    "nfs_dask.cluster.warming",
    "nfs_dask.export",
    "nfs_dask.prediction.evaluation",
    "nfs_dask.prediction.explaining",
    "nfs_dask.prediction.scoring",
    "nfs_dask.methods.recipes",
    "nfs_dask.methods.centers",
    "nfs_dask.methods.hybrid",
    "nfs_dask.models.centers",
    "nfs_dask.solvers.centers",
    "nfs_dask.solvers.medians",
    "nfs_dask.solvers.predicted_error",
    "nfs_dask.statistics.medians",
)


def test_commands_on_little_data_load_no_cluster(tmp_path):
    """Nor what estimators of users are made of, nor the linear algebra that numba looks for, unless scipy does.

    Nor what they do with a model, nor other methods.
    """
    (tmp_path / "mail.csv").write_text("folder,text\nspam,win a watch\nham,see you at noon\nspam,win gold\n")
    command = [sys.executable, "-c", f"import json\n{COMMANDS}"]
    done = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, text=True)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(lines) == 2
    assert not [name for name in lines[1] if name.startswith(NOT_FITTING)]
    (matrices,) = modules_after("import scipy.sparse").values()
    for modules in lines:
        found = {name.split(".")[0] for name in modules}
        # Reading a CSV takes pyarrow; sparse has numba load it before any kernel.
        assert not found & ({*LEAN, "dask", "tornado"} - {"sparse", "pyarrow"})
        assert "numba.np.arraymath" in modules
        assert not {"scipy.linalg", "scipy.special", "numpy.f2py"} & (set(modules) - matrices)
