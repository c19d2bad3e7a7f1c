"""Pages of the reference, written before Sphinx reads: one for each public name, and one for each command.

Names come from `nfs_dask.__all__` and commands from the command line itself, so that new ones appear by themselves.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import nfs_dask
from nfs_dask.cli.main import cli

DOCS = Path(__file__).resolve().parents[1]
WIDTH = 88  # columns of the help of a command

GROUPS = {  # where a public name lives, longest first; errors and modules are told by what they are
    "nfs_dask.estimators.evaluating": "Models that are there",
    "nfs_dask.estimators.loading": "Models that are there",
    "nfs_dask.estimators": "Estimators",
    "nfs_dask.dataset": "Data and plans",
    "nfs_dask.ingestion": "Data and plans",
    "nfs_dask.selection": "How many features",
    "nfs_dask.engine": "Where passes run",
    "nfs_dask.prediction": "Models that are there",
    "nfs_dask.methods": "Models that are there",
    "": "Others",
}
ORDER = (
    "Data and plans", "Estimators", "Models that are there", "How many features", "Where passes run", "Parts", "Others",
    "What calls return", "Errors and warnings",
)  # fmt: skip
RETURNED = {  # what calls return, and users hold
    "nfs_dask.selection.path_table.Path": "of `path`",
    "nfs_dask.selection.chosen.Chosen": "of `choose`, for estimators to take as their k",
    "nfs_dask.selection.validation_table.CrossValidation": "of `cross_validate`",
    "nfs_dask.prediction.evaluation.Evaluation": "of `evaluate`",
    "nfs_dask.prediction.coverage.Curve": "of `accuracy_coverage`",
    "nfs_dask.solvers.predicted_error.estimate.ErrorEstimate": "of `predict_error`",
    "nfs_dask.engine.plan.Plan": "of `plan`",
    "nfs_dask.engine.plan.Schedule": "of `plan`, where there are several passes",
}
FIELD = re.compile(r"    (?P<name>[a-z]\w*): [^#=]+(?:= [^#]+)?  # (?P<said>.+)$")
INNER = {  # public because parts of the package ask for them; they are for methods of your own, not for users
    "joined", "n_choosable", "n_selected", "plans", "predicted_errors", "rank", "recipe", "settings", "solves_each_k",
    "statistic", "take_over",
}  # fmt: skip


def group_of(name: str) -> str:
    """Under which heading a public name is."""
    value = getattr(nfs_dask, name)
    if isinstance(value, ModuleType):
        return "Parts"
    if inspect.isclass(value) and issubclass(value, Exception):
        return "Errors and warnings"
    return next(group for place, group in GROUPS.items() if value.__module__.startswith(place))


def public_names() -> list[str]:
    """Of the package, and its public parts, which keep names of their own together."""
    return [name for name in nfs_dask.__all__ if not name.startswith("__")] + sorted(getattr(nfs_dask, "_PARTS", ()))


def python_pages() -> dict[str, str]:
    """Pages of the public names, and of what they return, by the names of their files, in the order of groups."""
    pages, rows = {}, {group: [] for group in ORDER}
    for name in public_names():
        value = getattr(nfs_dask, name)
        pages[name] = _of_module(value) if isinstance(value, ModuleType) else _of(f"nfs_dask.{name}", value)
        rows[group_of(name)].append((name, name, summary(value)))
    for place, said in RETURNED.items():
        value = found(place)
        file = f"result-{value.__name__.lower()}"  # Path and path are one file on some disks
        pages[file] = _of(place, value)
        rows["What calls return"].append((file, value.__name__, f"{summary(value)} What comes {said}."))
    tables = [_table(group, found) for group, found in rows.items() if found]
    head = f"{_title('Python')}``import nfs_dask as nfs`` has these names, and loads what one needs at its first use.\n"
    order = [file for found in rows.values() for file, _, _ in found]
    return {"index": "\n".join([head, *tables, _contents(order)])} | {file: pages[file] for file in order}


def command_pages() -> dict[str, str]:
    """Pages of the commands, by their names; of a group of commands that of each."""
    pages = dict(_commands(cli, "nfs-dask"))
    main = pages.pop("nfs-dask")
    return {"index": f"{main}\n{_contents(list(pages))}"} | pages


def summary(value: Any) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").strip()


def found(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def _of(place: str, value: Any) -> str:
    return _title(place.rpartition(".")[2]) + _described(place, value)


def _of_module(module: ModuleType) -> str:
    """A part of the package that has public names of its own."""
    short = module.__name__.rpartition(".")[2]
    names = [name for name in getattr(module, "__all__", ()) if not name.startswith("_")]
    described = [_title(name, "-") + _described(f"{module.__name__}.{name}", getattr(module, name)) for name in names]
    return "\n".join([_title(short), f".. automodule:: {module.__name__}\n", *described])


def _described(place: str, value: Any) -> str:
    if not inspect.isclass(value):
        kind = "function" if callable(value) else "data"
        return f".. auto{kind}:: {place}\n"
    if issubclass(value, Exception):
        return f".. autoexception:: {place}\n   :show-inheritance:\n"
    # Nobody makes what calls return: how that goes is left out.
    text = f".. autoclass:: {place}" + (f"()\n\n{_fields(value)}" if place in RETURNED else "\n\n")
    text += "".join(_member(value, name) for name in members_of(value))
    inner = sorted(INNER & set(members_of(value, hidden=True)))
    if inner:
        text += "   .. rubric:: For methods of your own\n\n   Parts of the package ask an estimator for these.\n\n"
    return text + "".join(_member(value, name) for name in inner)


def _fields(kind: type) -> str:
    """What a dataclass holds, by what its source says beside each field."""
    if not is_dataclass(kind):
        return ""
    told = [found for line in inspect.getsource(kind).splitlines() if (found := FIELD.match(line))]
    return "".join(
        f"   .. attribute:: {one['name']}\n\n      {one['said'][:1].upper()}{one['said'][1:]}.\n\n" for one in told
    )


def _member(kind: type, name: str) -> str:
    is_property = isinstance(inspect.getattr_static(kind, name), property | cached_property)
    return f"   .. auto{'property' if is_property else 'method'}:: {name}\n\n"


NOT_SHOWN = {"cells", "headline", "nothing"}  # how results are made and print themselves


def members_of(kind: type, hidden: bool = False) -> list[str]:
    """What a class, or one of ours that it is derived from, defines and describes."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("nfs_dask")]
    names = {name for base in ours for name in vars(base) if not name.startswith(("_", "set_"))}
    return sorted(name for name in names - NOT_SHOWN - (set() if hidden else INNER) if _is_described(kind, name))


def _is_described(kind: type, name: str) -> bool:
    member = inspect.getattr_static(kind, name)
    member = getattr(member, "__func__", getattr(member, "fn", member))
    return (callable(member) or isinstance(member, property | cached_property)) and bool(inspect.getdoc(member))


def _commands(command: click.Command, name: str, above: click.Context | None = None) -> Iterator[tuple[str, str]]:
    shown = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, parent=above, info_name=name, **shown)
    called = context.command_path
    text = "".join(f"   {line}".rstrip() + "\n" for line in command.get_help(context).splitlines())
    head = _title("Commands" if command is cli else called) + f".. code-block:: text\n\n{text}"
    yield called.removeprefix("nfs-dask ").replace(" ", "-"), head
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, name, context)


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f"   * - :doc:`{name} <{file}>`\n     - {said}" for file, name, said in rows]
    return f"{_title(title, '-')}.. list-table::\n   :widths: 30 70\n\n" + "\n".join(lines) + "\n"


def _contents(files: list[str]) -> str:
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {file}\n" for file in files)


def write(folder: Path, pages: dict[str, str]) -> None:
    """All pages of a folder; what Sphinx has read already keeps its time where nothing changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.rst"):
        if file.stem not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def _write_all(_app: Any) -> None:
    write(DOCS / "reference" / "python", python_pages())
    write(DOCS / "reference" / "commands", command_pages())


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", _write_all)
    return {"parallel_read_safe": True}
