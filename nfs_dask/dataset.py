"""Datasets: data that lie somewhere, what is known of them, and passes over them."""

from __future__ import annotations

import os
from typing import Any, Protocol, runtime_checkable

import numpy as np

from nfs_dask.arrays.block import Array, Kind
from nfs_dask.documents.number_tables import open_numbers
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction, fold_in_place, folds_in_place
from nfs_dask.engine.plan import Plan, Schedule
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.files.folder import Folder
from nfs_dask.markup import facts_list, fragment, shortened_name
from nfs_dask.redaction import redacted
from nfs_dask.sources.chosen_rows import ChosenRows, rows_where
from nfs_dask.sources.labels import warn_of_classes
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import Renumbered, some_columns
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.store.cache import Kept
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.units import several

MOST_NAMED = 10  # classes in a notebook


class Dataset:
    """Documents with labels, read block by block when a pass needs them.

    Made by `open_dataset` and `nfs_dask.ingest`. Holds no data and no open file.

    Parameters
    ----------
    source : nfs_dask.sources.source.Source
        Where the rows come from.
    location : str, optional
        The path or URL they lie at.
    reuse : bool, default=True
        Whether statistics that were kept are used, and new ones are kept.

    Examples
    --------
    >>> import tempfile
    >>> import nfs_dask as nfs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dataset = nfs.ingest([[2, 0], [0, 1], [1, 0]], f"{folder}/drinks.zarr", labels=["tea", "coffee", "tea"])
    ...     counts = dataset.reduce(dataset.class_counts())
    >>> dataset.n_rows, dataset.classes.tolist(), counts.state.totals["rows"].tolist()
    (3, ['coffee', 'tea'], [1, 2])
    """

    def __init__(self, source: Source, location: str | None = None, *, reuse: bool = True) -> None:
        self.source = source
        self.location = location
        self.reuse = reuse

    @property
    def n_rows(self) -> int:
        """How many documents there are; below 0 where that is not known before they have been read."""
        return self.source.n_rows

    @property
    def n_features(self) -> int:
        """How many columns there are."""
        return self.source.n_features

    @property
    def nnz(self) -> int | None:
        """Stored entries, where that is known without reading them."""
        return self.source.nnz

    @property
    def classes(self) -> Array | None:
        """The sorted labels; None without labels."""
        return self.source.classes

    @property
    def kind(self) -> Kind | None:
        """Which values there are; None where that is not known before they have been read."""
        return self.source.kind

    @property
    def fingerprint(self) -> str | None:
        """Changes when the data or the labels do; None for data that cannot be recognised again."""
        return self.source.fingerprint

    @property
    def text(self) -> TextFacts | None:
        """How texts became the rows of a store of ours, and what an ingest has seen of them; None of other data."""
        return self.source.text

    def names(self, columns: Array) -> list[str] | None:
        """Names of some columns, read without loading the rest."""
        return self.source.names(columns)

    def align(self, model: Any) -> Dataset:
        """Return the same rows with the columns of a fitted model, which are found by their names.

        A model takes columns by their place, and refuses data that have its features elsewhere, as two ingests of
        different documents do. What it has selected is put where it expects it; all other columns are empty. A feature
        that is not in these data counts as 0, of which a warning tells.

        Parameters
        ----------
        model : estimator
            Fitted to features with names.

        Returns
        -------
        Dataset
            For `predict`, `transform`, `score`, `explain` and `evaluate` of this model.

        Examples
        --------
        >>> import tempfile
        >>> import nfs_dask as nfs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train = nfs.ingest(["green tea", "black coffee"], f"{folder}/train.zarr", labels=["tea", "coffee"])
        ...     test = nfs.ingest(["coffee with milk", "tea with milk"], f"{folder}/test.zarr")
        ...     model = nfs.SparseMultinomialNB(k=2, always=["tea", "coffee"]).fit(train)
        ...     model.predict(test.align(model)).tolist()
        ['coffee', 'tea']
        """
        if isinstance(self.source, ChosenRows):  # it stays outside, as it knows the numbers of the rows
            source: Source = ChosenRows(_aligned(self.source.underlying, model), self.source.choice)
        else:
            source = _aligned(self.source, model)
        return Dataset(source, self.location, reuse=self.reuse)

    def __repr__(self) -> str:
        entries = "" if self.nnz is None else f", {self.nnz:,} entries"
        classes = "no labels" if self.classes is None else several(len(self.classes), "class", "classes")
        where = "" if self.location is None else f" at {redacted(self.location)}"
        rows = f"{self.n_rows:,}" if self.n_rows >= 0 else "unknown"
        return f"<Dataset{where}: {rows} rows x {self.n_features:,} features{entries}, {classes}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is known without reading."""
        classes = None if self.classes is None else self.classes.tolist()
        named = "none" if classes is None else ", ".join(shortened_name(label, 40) for label in classes[:MOST_NAMED])
        more = f" and {len(classes) - MOST_NAMED:,} more" if classes is not None and len(classes) > MOST_NAMED else ""
        facts = {
            "at": None if self.location is None else redacted(self.location),
            "rows": f"{self.n_rows:,}" if self.n_rows >= 0 else "unknown",
            "features": f"{self.n_features:,}",
            "entries": None if self.nnz is None else f"{self.nnz:,}",
            "values": self.kind,
            "classes": named + more,
            "fingerprint": self.fingerprint,
        }
        known = [(name, value) for name, value in facts.items() if value is not None]
        return fragment(facts_list(known, "Dataset"))

    @property
    def statistics(self) -> Kept | None:
        """Where statistics of these data are kept: inside a store of ours, next to anything else."""
        if self.location is None or self.fingerprint is None:
            return None
        inside = f"{self.location}/nfs_dask/statistics" if self.source.trusted else f"{self.location}.nfs_statistics"
        return Kept(Folder(inside), self.fingerprint)

    @property
    def kept(self) -> Kept | None:
        """The same, unless nothing is to be reused."""
        return self.statistics if self.reuse else None

    @property
    def beside(self) -> Folder | None:
        """The folder that the data lie in, where that is known; workers are likely to reach it."""
        return None if self.location is None else Folder(self.location.rsplit("/", 1)[0])

    def plan(self, statistic: Statistic, engine: Engine | None = None) -> Plan:
        """What `reduce` would do, and what it would take; nothing is read."""
        return choose_engine(engine, self.source).plan(statistic, self.source, beside=self.beside)

    def reduce(self, statistic: Statistic, engine: Engine | None = None) -> Reduction:
        """One pass over the data, or none where the statistic was kept."""
        if engine is None and self.location is None and folds_in_place(statistic, self.source):
            return fold_in_place(statistic, self.source)
        return choose_engine(engine, self.source).reduce(statistic, self.source, kept=self.kept, beside=self.beside)

    def known_classes(self, least: int = 2) -> Array:
        """The classes; fewer than ``least``, and so many that they may be measurements, are warned of."""
        if self.classes is None:
            own = f"add them with `nfs-dask label {redacted(self.location or 'STORE')} FILE`, or "
            raise InputError(
                f"{self!r} has no labels; {own if self.source.trusted else ''}name the column that holds them, or give "
                "each row a label, when you open or ingest it"
            )
        if len(self.classes) == 0:
            raise InputError(f"no document of {self!r} has a label; give every document one of at least two classes")
        if least > 1:  # else these may be some of the documents
            warn_of_classes(self.classes, self.n_rows)
        return self.classes

    def class_counts(self, **parameters: Any) -> ClassCounts:
        """The description of this dataset's class counts."""
        return ClassCounts(len(self.known_classes()), **parameters)


def _aligned(source: Source, estimator: Any) -> Source:
    """The columns that a model has selected, in the places where it expects them."""
    model = getattr(estimator, "model_", None)
    if model is None:
        raise InputError(f"model={estimator!r} is no fitted estimator; give what fit or nfs_dask.load_model returns")
    if model.names is None or len(set(model.names)) < len(model.names):
        raise InputError("the model has no distinct names of the features it selected; fit it to data that have them")
    if model.needs_whole_rows:
        raise InputError(
            f"this model of method {model.method!r} also depends on features that it has not selected, whose names it "
            "does not keep; give all columns of the training data in their order"
        )
    if source.text is not None and source.text.settings.tfidf:
        raise InputError(
            "these data hold tf-idf weights by the document frequencies of their own documents; give the model the "
            "texts, which it reads by those of the training data"
        )
    found = source.columns_named(model.names)
    if not found:
        what = "no names of columns" if found is None else "none of the features that the model selected"
        raise InputError(f"these data have {what}; give data with the features of the training data")
    if missing := [name for name in model.names if name not in found]:
        warn(
            f"{len(missing):,} of the {len(model.names):,} features that the model selected are not in these data, "
            f"such as {missing[0]!r}; they count as 0",
            DataWarning,
        )
    names = dict(zip(model.support.tolist(), model.names, strict=True))
    pairs = sorted((found[name], number) for number, name in names.items() if name in found)
    columns, numbers = np.array(pairs, np.int64).T
    return Renumbered(some_columns(source, columns), numbers, names, model.n_features)


def open_dataset(
    store: Any, *, labels: Any = None, layer: str | None = None, where: Any = None, reuse: bool = True
) -> Dataset:
    """Open data where they lie, without reading or converting them.

    Parameters
    ----------
    store : str, path, list of these, or matrix
        A store of ours, an AnnData Zarr or .h5ad, .npz, .npy or svmlight files (globs and lists too); a path or a URL.
    labels : str, or (n,) labels, optional
        The column that holds the labels, or one label for each row. None: the store's own.
    layer : str, optional
        Of an AnnData file, instead of X.
    where : dict, optional
        Which rows, by values of columns of the table of rows: ``{"split": "train"}``, or a list of values of which one
        is there.
    reuse : bool, default=True
        Whether statistics that were kept are used, and new ones are kept.

    Returns
    -------
    Dataset
        For `path`, `cross_validate`, `plan`, and the `fit` of estimators.

    Raises
    ------
    StoreError
        There is nothing to open, or what is there is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import nfs_dask as nfs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = nfs.ingest([[2, 0], [0, 1], [1, 0]], f"{folder}/drinks.zarr", labels=["tea", "coffee", "tea"])
    ...     opened = nfs.open_dataset(f"{folder}/drinks.zarr")
    >>> opened.n_rows, opened.n_features, opened.classes.tolist(), opened.fingerprint == made.fingerprint
    (3, 2, ['coffee', 'tea'], True)
    """
    location = Folder.of(store).location if isinstance(store, str | os.PathLike) else None
    column = labels if isinstance(labels, str) else None
    table = None if layer is not None else open_numbers(store, DocumentParameters(label_column=column, where=where))
    if table is not None:
        source = table if column is not None else open_source(table, labels=labels)
    else:
        source = rows_where(open_source(location or store, labels=labels, layer=layer), where)
    return Dataset(source, location, reuse=reuse)


@runtime_checkable
class Fitting(Protocol):
    """An estimator, as far as a plan is concerned."""

    engine: Engine | None

    def plans(self, dataset: Dataset, engine: Engine | None) -> list[Plan]:
        """The passes of a fit, when all parameters have been checked."""
        ...


def plan(dataset: Dataset, what: Statistic | Fitting, engine: Engine | None = None) -> Plan | Schedule:
    """What a fit would do: tasks, bytes, memory in each worker, time. Nothing is read.

    Parameters
    ----------
    dataset : Dataset
        With labels.
    what : estimator, or statistic
        An estimator, whose parameters are checked too; or the statistic of a single pass.
    engine : SerialEngine or DaskEngine, optional
        Where it would run; None: the estimator's, else as for a pass.

    Returns
    -------
    Plan
        Of several passes a `Schedule`, which has their plans and the same summary.

    Raises
    ------
    PlanError
        A pass would not fit; the message says what would.

    Examples
    --------
    >>> import tempfile
    >>> import nfs_dask as nfs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dataset = nfs.ingest([[2, 0], [0, 1], [1, 0]], f"{folder}/drinks.zarr", labels=["tea", "coffee", "tea"])
    ...     plan = nfs.plan(dataset, nfs.SparseMultinomialNB(k=2), nfs.SerialEngine())
    >>> plan.strategy, plan.tasks, plan.peak_nbytes > 0
    ('dense', 1, True)
    """
    if isinstance(what, Statistic):
        return dataset.plan(what, engine)
    if not isinstance(what, Fitting):
        raise InputError(
            f"{what!r} cannot be planned; give an estimator, such as SparseMultinomialNB(k=100), or a statistic, such "
            "as dataset.class_counts()"
        )
    plans = what.plans(dataset, what.engine if engine is None else engine)
    return plans[0] if len(plans) == 1 else Schedule(tuple(plans))
