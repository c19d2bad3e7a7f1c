"""`report`: one page about a fitted classifier, which opens from a mail and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from nfs_dask._version import __version__
from nfs_dask.containers import a_type
from nfs_dask.dataset import Dataset
from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError, StoreError
from nfs_dask.estimators.classifier import parameters_of
from nfs_dask.estimators.evaluating import check_model, evaluate_closely, explain_hardest
from nfs_dask.files.folder import check_writable, parent_of
from nfs_dask.files.remote import split_query
from nfs_dask.markup import escaped, facts_list, shortened_name
from nfs_dask.models.certificate_text import certificate_in_words, facts_of_choice, verdict_of
from nfs_dask.plots.drawing import check_matplotlib
from nfs_dask.prediction.evaluation import Evaluation
from nfs_dask.prediction.explained_html import STYLE
from nfs_dask.registry import method_named
from nfs_dask.reports.sections import features_section, judged_section, origin_section, slider_section
from nfs_dask.selection.cross_validate import cross_validate
from nfs_dask.selection.make_path import path as make_path
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.units import several

MOST_DOCUMENTS = 100
POINTS = 30  # values of k of a path that is made for a report
AROUND = 10  # such a path goes up to so many times the k of the model, and to LEAST at least
LEAST = 1_000
MISSING = 'a report needs jinja2, which is not installed; pip install "nfs-dask[report]"'


def check_libraries() -> None:
    """Refuse to go on without the libraries of pages, before anything that takes long."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise InputError(MISSING) from None
    check_matplotlib()


@dataclass(frozen=True)
class ModelReport:
    """A page about a model. In a notebook it shows itself.

    Attributes
    ----------
    html : str
        All of it; it needs nothing besides.
    """

    html: str

    def save(self, place: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it to a file.

        Parameters
        ----------
        place
            The file, or its URL, which ends in ``.html``.
        overwrite
            Whether a file that is there is replaced.
        """
        folder, name = parent_of(os.fspath(place))
        if not split_query(os.fspath(place))[0].lower().endswith((".html", ".htm")):
            raise InputError(f"{os.fspath(place)!r} does not end in .html; a report is one page of HTML, name it so")
        if folder.exists(name) and not overwrite:
            raise StoreError(f"{os.fspath(place)} exists; name another file, or replace it with overwrite=True")
        check_writable(folder)
        with folder.create(name) as file:
            file.write(self.html.encode())

    def __repr__(self) -> str:
        return f"<ModelReport: {len(self.html.encode()):,} bytes of HTML; save(file) writes them>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which may run its slider and nothing else."""
        return (
            f'<iframe srcdoc="{escaped(self.html)}" sandbox="allow-scripts" title="report" width="100%" height="800">'
            "</iframe>"
        )


def report(
    model: Any,
    data: Any = None,
    y: Any = None,
    *,
    path: Any = None,
    cross_validation: CrossValidation | None = None,
    folds: Any = None,
    title: str | None = None,
    n_documents: int = 10,
    label_column: str | None = None,
    text_column: str | None = None,
    regions: Sequence[str] | Mapping[str, str] | None = None,
    encoding: str = DocumentParameters.encoding,
    on_error: OnError = DocumentParameters.on_error,
    engine: Engine | None = None,
) -> ModelReport:
    """One HTML page about a fitted classifier: how sure its choice is, what it goes by, how it does on test data.

    The page is complete and small, at most two megabytes whatever the model: it opens from a mail, and fetches nothing.

    Parameters
    ----------
    model
        A fitted estimator of this package.
    data, y
        Test data, as X and y of `nfs_dask.evaluate`; None: the page says nothing of accuracy.
    path : Path or Dataset, optional
        What `nfs_dask.path` returns, for a slider over k; or training data, of which a path of about thirty k is made.
    cross_validation : CrossValidation, optional
        What `nfs_dask.cross_validate` returns, for the accuracy of the k on the slider.
    folds
        Cross-validate the k on the slider with so many folds, as of `nfs_dask.cross_validate`; for a Dataset as path=.
    title : str, optional
        Of the page.
    n_documents : int, default=10
        So many documents that the model got most wrong, and was least sure of, are shown with their words marked.
    label_column, text_column, regions, encoding, on_error
        How test documents are read, as of `nfs_dask.evaluate`.
    engine : SerialEngine or DaskEngine, optional
        Where test data are read, and passes of a path run; None: that of the estimator, else as for a pass.

    Returns
    -------
    ModelReport
        With `save`, and ``html``.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]
    >>> y = ["tea", "tea", "coffee", "coffee"]
    >>> model = nfs.SparseMultinomialNB(k=2).fit(X, y)
    >>> nfs.report(model, X, y, path=nfs.path(X, y, method="multinomial")).save("tea.html")  # doctest: +SKIP
    """
    check_model(model)
    _check_asked(n_documents, path, cross_validation, folds)
    check_libraries()
    if path is not None:
        check_ranks(model)
    found = None
    if data is not None:
        reading = DocumentParameters(text_column, regions, label_column, encoding=encoding, on_error=on_error)
        found = evaluate_closely(model, data, y, reading, engine, n_documents)
    elif y is not None:
        raise InputError("y= are the labels of test data, and there are none; give them as data=")
    if isinstance(path, Dataset):
        path, cross_validation = path_for(model, path, folds, engine, cross_validation)
    return report_of(model, found, path, cross_validation, title, engine)


def _check_asked(n_documents: int, path: Any, cross_validation: Any, folds: Any) -> None:
    """Refuse what cannot be told, before anything is read."""
    whole = isinstance(n_documents, int | np.integer) and not isinstance(n_documents, bool)
    if not whole or not 0 <= n_documents <= MOST_DOCUMENTS:
        raise InputError(f"n_documents={n_documents!r}; give how many to show, from 0 to {MOST_DOCUMENTS}")
    if path is not None and not isinstance(path, Path | Dataset):
        raise InputError(f"path is {a_type(path)}; give what nfs_dask.path(...) returns, or a Dataset to make one of")
    if cross_validation is not None and not isinstance(cross_validation, CrossValidation):
        raise InputError(f"cross_validation is {a_type(cross_validation)}; give what nfs_dask.cross_validate returns")
    if cross_validation is not None and path is None:
        raise InputError("cross_validation= is shown on the slider of a path; give that, too, as path=")
    if folds is not None and not isinstance(path, Dataset):
        raise InputError("folds= is for training data that are given as path=; give cross_validation= instead")


def check_ranks(model: Any) -> None:
    """Refuse a path for a method that has none."""
    instead = method_named(model.model_.method).instead_of_paths
    if instead is not None:
        raise InputError(
            f"a model of method {model.model_.method!r} does not rank features, so that there is no path of it; leave "
            f"the path out, or {instead}"
        )


def path_for(
    model: Any, data: Dataset, folds: Any, engine: Engine | None, table: CrossValidation | None = None
) -> tuple[Path, CrossValidation | None]:
    """A path of about thirty k around that of a model, of the same settings, and how good they are."""
    k, n = len(model.model_.support), data.n_features
    ks = np.geomspace(min(2, n), min(n, max(LEAST, AROUND * k)), POINTS)
    wanted = np.unique([*np.rint(ks).astype(np.int64).tolist(), max(1, min(k, n))]).tolist()
    given = parameters_of(model)
    names = ("alpha", "binarize", "covariance", "variance_floor")
    method = model.model_.method
    takes = {name: given[name] for name in names if given.get(name) is not None}
    if method in ("l1", "l2"):
        takes = {}
    found = make_path(data, method, wanted, engine=engine, **takes)
    if folds is not None and table is None:
        alphas = {"alphas": (takes.pop("alpha"),)} if "alpha" in takes else {}
        table = cross_validate(data, method=method, ks=wanted, folds=folds, engine=engine, **alphas, **takes)
    return found, table


def report_of(
    model: Any,
    found: Evaluation | None,
    path: Path | None = None,
    cross_validation: CrossValidation | None = None,
    title: str | None = None,
    engine: Engine | None = None,
) -> ModelReport:
    """The page about a model; refuses a path or a table of another method or other data."""
    fitted = model.model_
    for name, other in (("path", path), ("cross_validation", cross_validation)):
        if other is None:
            continue
        mine, theirs = (fitted.method, fitted.n_features), (other.method, other.n_features)
        if mine != theirs or not np.array_equal(model.classes_, other.classes):
            raise InputError(
                f"{name} is of method {theirs[0]} over {theirs[1]:,} features in {len(other.classes)} classes, the "
                f"model of {mine[0]} over {mine[1]:,} in {len(model.classes_)}; give one of the same data and method"
            )
    k = len(fitted.support)
    summary = f"{k:,} of {fitted.n_features:,} features tell {fitted.n_classes:,} classes apart; the choice is "
    summary += f"{verdict_of(fitted)}."
    if found is not None:
        summary += f" {found.accuracy:.1%} of {found.n:,} test documents are right."
    judged = None if found is None else judged_section(found, explain_hardest(model, found))
    sections = {
        "certificate": "How good the choice is",
        "features-by-k": "Each number of features" if path is not None else None,
        "features": "Features",
        "test": "Test data" if judged else None,
        "wrong": "Most wrong" if judged and judged["wrong"] else None,
        "unsure": "Least sure" if judged and judged["unsure"] else None,
        "origin": "How it was made",
    }
    contents = {
        "version": __version__,
        "title": shortened_name(title) if title else f"{fitted.method}: {several(k, 'feature', 'features')}",
        "summary": summary,
        "sections": [(anchor, name) for anchor, name in sections.items() if name is not None],
        "certificate": certificate_in_words(fitted),
        "certificate_table": facts_list(facts_of_choice(fitted), "The choice of features"),
        "judged": judged,
    }
    slider = slider_section(path, k, cross_validation, parameters_of(model).get("alpha"), engine)
    return ModelReport(_page(contents | features_section(model) | slider | origin_section(model)))


def _page(contents: Mapping[str, Any]) -> str:
    """One page of HTML, with a policy that browsers hold it to; equal contents are equal bytes."""
    import jinja2

    environment = jinja2.Environment(  # names of whoever made the data are texts, and never elements
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style, script = f"\n{STYLE}{_template('report.css')}", f"\n{_template('report.js')}"
    style_hash, script_hash = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in (style, script))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash.decode()}'; script-src 'sha256-{script_hash.decode()}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = environment.get_template("report.html.jinja")
    return template.render(style=style, script=script, policy=policy, **contents)


def _template(name: str) -> str:
    return files("nfs_dask.reports").joinpath("templates", name).read_text(encoding="utf-8")
