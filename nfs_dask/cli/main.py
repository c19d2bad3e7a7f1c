"""The command line: ``nfs-dask ...``, and ``dask nfs ...`` where Dask's own command is at hand."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from nfs_dask.cli.demo import demo
from nfs_dask.cli.explain import explain, features, report
from nfs_dask.cli.export import onnx, sklearn, sql
from nfs_dask.cli.fit import fit
from nfs_dask.cli.info import info
from nfs_dask.cli.ingest import ingest, label
from nfs_dask.cli.output import remember_secrets
from nfs_dask.cli.path import path
from nfs_dask.cli.plan import plan
from nfs_dask.cli.predict import evaluate, predict
from nfs_dask.cli.reporting import reporting
from nfs_dask.cli.runs import doctor, status, stop
from nfs_dask.progress import running_command

_MANY_OBJECTS = 100_000  # some 20 MB


class _Commands(click.Group):
    """A group whose commands report errors in one way, whichever program they were called from."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        remember_secrets(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with reporting(ctx), _rarely_collecting():
            return super().invoke(ctx)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        running_command.set(args[0])
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which people need them


@contextmanager
def _rarely_collecting() -> Iterator[None]:
    """Look for cycles of objects after more new ones: modules, which are most of what is new, have none to give back.

    Else that is a sixth of a short fit.
    """
    usual = gc.get_threshold()
    gc.set_threshold(max(usual[0], _MANY_OBJECTS) if usual[0] else 0, *usual[1:])  # 0: never
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        from nfs_dask._version import __version__

        click.echo(f"nfs-dask {__version__}")
        ctx.exit()


@click.group("nfs", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it and exit."
)
def cli() -> None:
    """Sparse classifiers on data that need not fit on one machine.

    \b
    nfs-dask demo                                     see it work, in seconds
    nfs-dask ingest mail.csv --label-column folder mail.zarr
    nfs-dask label mail.zarr folders.txt              labels for a store without any
    nfs-dask info mail.zarr                           what is in it
    nfs-dask plan mail.zarr --workers 4               what a pass would take
    nfs-dask path mail.zarr                           what each number of features is worth
    nfs-dask fit mail.zarr spam.model -k 100          a classifier over the best 100 features
    nfs-dask status run                               how a fit with --run run stands
    nfs-dask stop run                                 end it; what was counted is kept
    nfs-dask evaluate spam.model test.csv --label-column folder
    nfs-dask predict spam.model new.csv               the class of each document
    nfs-dask explain spam.model 'Win a cheap watch'   which words speak for it, and how much
    nfs-dask report spam.model spam.html --data test.csv --label-column folder
    nfs-dask features spam.model --out words.csv      what the model goes by
    nfs-dask sql spam.model --table words             the model, for a database

    Exit codes: 0 done; 2 wrong usage; 3 bad input; 4 refused or failed by the cluster; 130 interrupted
    by Ctrl-C; 143 ended by SIGTERM.
    """


_LOOKING = (predict, evaluate, explain, report, features, sql, onnx, sklearn)
for command in (demo, ingest, label, info, plan, path, fit, status, stop, *_LOOKING, doctor):
    cli.add_command(command)
