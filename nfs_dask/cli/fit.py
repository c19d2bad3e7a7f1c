"""``nfs-dask fit``: from a dataset to a saved model."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.detached import RememberingCommand, answer_detached, go_on_detached, typed_command, typed_words
from nfs_dask.cli.output import (
    answer,
    certificate,
    check_model,
    check_output_file,
    output_file,
    show,
    show_chosen,
    show_line,
    table,
    top_features_table,
)
from nfs_dask.cli.reporting import keeps
from nfs_dask.errors import ClusterError, DataWarning, InputError, ResumeError
from nfs_dask.registry import METHODS, K, options_of_all
from nfs_dask.units import format_seconds

if TYPE_CHECKING:
    from nfs_dask.dataset import Dataset
    from nfs_dask.estimators.classifier import SparseClassifier


@click.command(cls=RememberingCommand)
@click.argument("store")
@click.argument("model")
@options.method(METHODS)
@options.parameters([K, *options_of_all()])
@options.label_column
@options.where
@click.option("--report", "page", metavar="FILE", help="Also write a page about the model, as `nfs-dask report` does.")
@options.no_cache
@click.option("--run", metavar="RUN", help="A new folder that all workers reach, from which --resume can go on.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--detach", is_flag=True, help="Go on without this terminal; the run folder tells how it stands.")
@click.option("--on-cluster", is_flag=True, help="With --detach: go on as a task of the scheduler's workers.")
@options.all_features
@options.overwrite
@options.cluster
@options.json_output
def fit(
    store: str,
    model: str,
    method: str,
    parameters: dict[str, Any],
    label_column: str | None,
    where: dict[str, list[str]] | None,
    page: str | None,
    no_cache: bool,
    run: str | None,
    resume: str | None,
    detach: bool,
    on_cluster: bool,
    all_features: bool,
    overwrite: bool,
    cluster: options.ClusterOptions,
) -> None:
    """Choose features of STORE, fit a classifier to them, and write it to MODEL.

    Most methods read the data once, medians (l1) of more than a few rows twice and a part, a hybrid twice. What they
    find is kept: another k or alpha reads no documents, of a hybrid all of them once.

    With --run, what is finished outlives this process: Ctrl-C and SIGTERM end it with the command that goes on with it,
    and nfs-dask status tells how it stands. With --detach, the run goes on by itself: as a process of this machine, or
    with --on-cluster as a task of the scheduler, which another worker takes over if its worker dies. nfs-dask stop ends
    it as Ctrl-C would.

    \b
    nfs-dask fit mail.zarr spam.model --method multinomial -k 100
    nfs-dask fit mail.zarr spam.model -k 0.001 --alpha 0.1 --workers 2 --memory-limit 1GiB
    nfs-dask fit genes.h5ad tissue.model --label-column tissue --method l1 -k 50
    nfs-dask fit mail.zarr spam.model -k 100 --class-weight balanced --class-prior spam=0.2,ham=0.8
    nfs-dask fit letters.zarr letters.model --method hybrid --report letters.html
    nfs-dask fit s3://bucket/mail.zarr s3://bucket/spam.model -k 1000 --run s3://bucket/run
    nfs-dask fit mail.zarr spam.model -k 1000 --workers 4 --run run --detach
    nfs-dask fit s3://bucket/mail.zarr s3://bucket/spam.model --run s3://bucket/run \
      --scheduler tls://10.0.0.1:8786 --detach --on-cluster
    nfs-dask status run --watch
    """
    from nfs_dask.documents.locations import format_of
    from nfs_dask.sources.open_source import check_format

    if format_of(store) is None:
        check_format(store)  # before estimators are imported, which takes seconds
    estimator = options.estimator_of(method, parameters)
    if run is not None and resume is not None:
        raise click.UsageError("--run begins a new run and --resume goes on with an old one; give one of them")
    folder = run or resume
    if detach and folder is None:
        raise click.UsageError("--detach needs a folder to report to; name one with --run RUN")
    if on_cluster and not (detach and cluster.scheduler):
        raise click.UsageError("--on-cluster goes with --detach, and with --scheduler ADDRESS, which says on which one")
    _check_run(run, resume)
    check_model(model, overwrite)
    check_output_file(page, overwrite, ".html", ".htm")
    if page is not None:
        from nfs_dask.reports.make_report import check_libraries

        check_libraries()
    if on_cluster and folder is not None:
        from nfs_dask.cli.on_cluster import submit_driver

        places = [place for place in (store, model, page) if place]
        with cluster.checked_client() as client:
            begun = submit_driver(client, typed_words(), folder, places, typed_command(False))
        answer_detached(begun)
        return
    if detach and folder is not None:
        go_on_detached(folder)
        return
    started = time.perf_counter()
    command = None if folder is None else typed_command(resume is not None)
    kept = None if command is None else f"what was counted is kept, go on with {command.resume}"
    keeps(kept or "no model was written")
    from nfs_dask.dataset import open_dataset
    from nfs_dask.engine.driver import driving

    try:
        with driving(folder, command):
            dataset = open_dataset(store, labels=label_column, where=where, reuse=not no_cache)
            with warnings.catch_warnings(action="ignore", category=DataWarning):  # the fit says so
                dataset.known_classes()
                estimator.statistic(dataset)  # which looks at all parameters, before there is an engine
            with cluster.engine(dataset.source, folder) as engine:
                estimator.engine = engine
                estimator.fit(dataset)
                estimator.save(model)
                if page is not None:
                    _write_report(estimator, dataset, page, with_path=not no_cache)
    except ClusterError as error:
        if kept is None:
            raise
        raise ClusterError(f"{error}; {kept}") from error
    provenance, fitted = estimator.provenance_, estimator.model_
    reused = provenance["reused"]
    # Passes whose result was kept from before have read nothing
    passes = sum(one["share"] > 0 for one in provenance["passes"]) if "passes" in provenance else None
    values = {
        "model": model,
        "report": page,
        "method": fitted.method,
        "rows": provenance["rows"],
        "features": dataset.n_features,
        "k": len(fitted.support),
        "classes": estimator.classes_,
        "measure": fitted.measure,
        "objective": estimator.objective_,
        "upper_bound": estimator.upper_bound_,
        "gap": estimator.dual_gap_,
        "certified": estimator.certified_,
        "counts_reused": reused,
        "passes": len(provenance["seconds"]) if passes is None else passes,
        "reads": provenance.get("reads", 0.0 if reused else 1.0),
        "top_features": {str(label): top for label, top in estimator.top_features(10).items()},
        "seconds": time.perf_counter() - started,
    }
    from nfs_dask.summary import chosen_features, slopes_of

    if (slopes := slopes_of(fitted)) is not None:
        values |= {"theta": estimator.theta_, "slopes": slopes}
    if all_features:
        values["chosen"] = chosen_features(fitted, estimator.get_feature_names_out().tolist())
    if answer(values):
        _show(values)


def submit_fit(client: Any, *words: str) -> dict[str, Any]:
    """Have a worker of the client's cluster drive ``nfs-dask fit`` with these words; where to look, and how to stop it.

    What a program, or a notebook, does to leave a fit behind: ``submit_fit(client, "s3://bucket/mail.zarr",
    "s3://bucket/spam.model", "-k", "1000", "--run", "s3://bucket/run")``.
    """
    from nfs_dask.cli.on_cluster import submit_driver

    with fit.make_context("nfs-dask fit", list(words)) as context:
        asked = context.params
        run = asked["run"] or asked["resume"]
        if run is None:
            raise InputError("a fit that is left behind needs a folder to report to; add '--run', RUN")
        _check_run(asked["run"], asked["resume"])
        places = [asked[name] for name in ("store", "model", "page") if asked[name]]
        return submit_driver(client, typed_words(), run, places, typed_command(False))


def _check_run(run: str | None, resume: str | None) -> None:
    from nfs_dask.engine.run_status import has_status
    from nfs_dask.files.folder import Folder

    if run is not None and Folder.of(run).exists("run.json"):
        raise ResumeError(f"{run} holds a run already; go on with it by --resume {run}, or name a new folder")
    if run is not None:
        from nfs_dask.files.folder import check_writable

        check_writable(Folder.of(run))
    if resume is not None and not has_status(resume):
        raise ResumeError(f"{resume} holds no run to go on with; begin one with --run {resume}")


def _write_report(estimator: SparseClassifier, dataset: Dataset, page: str, with_path: bool) -> None:
    """A page about the model, with a path where what was counted for the fit is enough for it."""
    from nfs_dask.registry import methods_of_paths
    from nfs_dask.reports.make_report import path_for, report_of

    with warnings.catch_warnings(action="ignore", category=DataWarning):  # the fit has said so
        kept = with_path and dataset.kept is not None and estimator.statistic(dataset) is not None
    path = None
    if kept and estimator.model_.method in methods_of_paths():
        path, _ = path_for(estimator, dataset, None, estimator.engine)
    with output_file(page) as file:
        file.write(report_of(estimator, None, path).html.encode())


def _show(values: dict[str, Any]) -> None:
    """Print the selected features that say most, and how sure the choice is."""
    show(table(*top_features_table(values["top_features"])))
    if "chosen" in values:
        show_chosen(values["chosen"])
    sure = certificate(values["k"], values["features"], values["certified"], values["gap"], values["measure"])
    slopes = ", ".join(f"{region} {slope:.3g}" for region, slope in values.get("slopes", {}).items())
    counted = f"{values['passes']} passes, {values['reads']:.3g} reads of the data"
    if values["counts_reused"]:
        counted = "statistics kept from before"
    elif values["passes"] == 1:
        counted = "one pass over the data"
    lines = [
        f"{values['method']}: {values['k']:,} of {values['features']:,} features, {values['rows']:,} documents",
        f"{values['measure']} {values['objective']:,.3f}{sure}",
        *([f"theta: {slopes}"] if slopes else []),
        *([f"{values['report']} written, a page about the model"] if values["report"] else []),
        f"{values['model']} written in {format_seconds(values['seconds'])} ({counted})",
    ]
    show_line("\n".join(lines))
