"""Every public name with its parameters, and every command with its options: what others rely on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click

import nfs_dask
from nfs_dask.cli.main import cli


def public_names() -> list[str]:
    """A line for each, in order."""
    return [*_of_python(), *_of_commands(cli, "nfs-dask")]


def _of_python() -> Iterator[str]:
    yield from _of_module(nfs_dask, "")
    yield from _of_module(nfs_dask.plots, "plots.")


def _of_module(module: Any, place: str) -> Iterator[str]:
    for name in sorted(module.__all__):
        value = getattr(module, name)
        yield f"{place}{name}{_parameters(value)}"
        if inspect.isclass(value):
            yield from (f"{place}{name}.{member}" for member in _members(value))


def _members(kind: type) -> Iterator[str]:
    """What the class, or one of ours that it is derived from, defines."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("nfs_dask")]
    names = sorted(
        {name for base in ours for name in vars(base) if not name.startswith(("_", "set_"))}
    )  # scikit-learn adds set_fit_request and the like
    for name in names:
        member = inspect.getattr_static(kind, name)
        function = getattr(member, "__func__", getattr(member, "fn", member))
        yield f"{name}{_parameters(function)}" if callable(function) else name


def _parameters(value: Any) -> str:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    return "(" + ", ".join(str(one.replace(annotation=one.empty)) for one in parameters) + ")"


def _of_commands(command: click.Command, place: str) -> Iterator[str]:
    for parameter in command.params:
        yield f"{place} {'/'.join([*parameter.opts, *parameter.secondary_opts])}"
    if isinstance(command, click.Group):
        for name in sorted(command.commands if command.commands else command.list_commands(click.Context(command))):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _of_commands(found, f"{place} {name}")


if __name__ == "__main__":
    print("\n".join(public_names()))
