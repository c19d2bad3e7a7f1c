"""From whatever a user has to a source."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type, is_collection, is_frame, split_off, unwrapped
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.data_files import expand
from nfs_dask.files.remote import is_url, split_query
from nfs_dask.graphs import computed
from nfs_dask.sources.anndata_memory import column_of, is_anndata, matrix_of, names_of_columns
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.labelled import Labelled
from nfs_dask.sources.matrices import ACCEPTED
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.sources.row_tables import FrameRowTable
from nfs_dask.sources.source import Source
from nfs_dask.store.row_columns import Annotations

SVMLIGHT = (".svm", ".svmlight", ".libsvm")


@dataclass(frozen=True)
class Request:
    """What goes with the data."""

    y: Any = None
    sample_weight: Any = None
    names: Sequence[str] | Array | None = None
    labels: str | None = None
    layer: str | None = None
    annotations: Annotations | None = None  # of an AnnData in memory
    look: bool = True


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    names: Sequence[str] | Array | None = None,
    labels: Any = None,
    layer: str | None = None,
    look: bool = True,
) -> Source:
    """Open data in memory, in Dask, or in files. Files are not loaded.

    Parameters
    ----------
    X
        A matrix (numpy, scipy sparse, sparse.COO or GCXS, pandas, polars, pyarrow, xarray), a dask array or DataFrame,
        or the path or URL of a Zarr store, .h5ad, .npz, .npy or svmlight file; patterns and lists of paths for the
        latter three.
    y, sample_weight
        One label and one weight for each row.
    names
        One name for each column.
    labels
        The column or array of a file, or the column of a table, that holds the labels. Also taken for ``y``, if it is
        not the name of one.
    layer
        Layer of an AnnData file that is read instead of X.
    look
        Whether to find out at once what takes reading all of the data, which svmlight files do; else when it is asked
        for, or by `Source.look`.
    """
    X, names = unwrapped(X), unwrapped(names, "names")
    y, labels, sample_weight = unwrapped(y, "y"), unwrapped(labels, "y"), unwrapped(sample_weight, "sample_weight")
    if labels is not None and not isinstance(labels, str):
        if y is not None:
            raise InputError("labels were given twice, as y= and as labels=; give one of them")
        y, labels = labels, None
    request = Request(y, sample_weight, names, labels, layer, look=look)
    for _, applies, opener in _WAYS:
        if applies(X):
            return opener(X, request)
    accepted = "; ".join(what for what, _, _ in _WAYS)
    raise InputError(f"X is {a_type(X)}, which cannot be opened; accepted are: {accepted}")


def _is_path(X: Any) -> bool:
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(_is_path(x) and not isinstance(x, (list, tuple)) for x in X)
    return isinstance(X, (str, os.PathLike))


def _is_matrix(X: Any) -> bool:
    return hasattr(X, "shape") or hasattr(X, "__array__") or isinstance(X, (list, tuple))


def _is_source(X: Any) -> bool:
    return isinstance(X, Source)


def _open_source(X: Source, request: Request) -> Source:
    X, request = _without_columns(X, request)
    if isinstance(X, CollectionSource):
        return X.given(y=request.y, sample_weight=request.sample_weight, names=request.names)
    return _joined(X, request)


def _open_collection(X: Any, request: Request) -> Source:
    X, request = _without_columns(*_with_labels(X, request))
    return CollectionSource(X, request.y, request.sample_weight, request.names, request.annotations)


def _open_anndata(X: Any, request: Request) -> Source:
    y = request.y if request.labels is None else column_of(X, request.labels)
    names = names_of_columns(X) if request.names is None else request.names
    matrix = matrix_of(X, request.layer)
    if _is_path(matrix):
        source = _open_h5ad((str(matrix),), Request())
        return _joined(source, Request(y, request.sample_weight, names))
    opener = _open_collection if is_collection(matrix) else _open_matrix
    table = FrameRowTable(X.obs, request.labels)
    return opener(matrix, Request(y, request.sample_weight, names, annotations=table))


def _open_matrix(X: Any, request: Request) -> Source:
    X, request = _without_columns(*_with_labels(X, request))
    y, weights = computed(request.y), computed(request.sample_weight)
    return MatrixSource(X, y, weights, request.names, request.annotations)


def _open_files(X: Any, request: Request) -> Source:
    paths = expand(X)
    formats = {_format_of(path): path for path in paths}
    if len(formats) > 1:
        raise InputError(f"{' and '.join(formats.values())} are of different formats; open one kind at a time")
    return _joined(next(iter(formats))(paths, request), request)


_WAYS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any, Request], Source]], ...] = (
    ("an opened source", _is_source, _open_source),
    ("a dask array or DataFrame", is_collection, _open_collection),
    ("AnnData", is_anndata, _open_anndata),
    (
        "the path or URL of a Zarr store, .h5ad, .npz, .npy, .svm, .svmlight or .libsvm file",
        _is_path,
        _open_files,
    ),
    (ACCEPTED, _is_matrix, _open_matrix),
)


def _with_labels(X: Any, request: Request) -> tuple[Any, Request]:
    """A table without the column of it that was named as labels, and its values as labels."""
    if request.labels is None or not is_frame(X):
        return X, request
    labels, rest = split_off(X, request.labels)
    return rest, replace(request, y=labels, labels=None)


def _without_columns(X: Any, request: Request) -> tuple[Any, Request]:
    if request.labels is not None:
        raise InputError(
            f"labels={request.labels!r} names a column, and X is {a_type(X)}, which has none; give one label for each "
            "row, as a list, array or Series"
        )
    if request.layer is not None:
        raise InputError(
            f"layer={request.layer!r} names a matrix of an AnnData, and X is {a_type(X)}; leave it out, and give the "
            "matrix that is meant as X"
        )
    return X, request


def _joined(source: Source, request: Request) -> Source:
    """The source with what the caller has in memory."""
    if request.y is None and request.sample_weight is None and request.names is None:
        return source
    return Labelled(source, computed(request.y), computed(request.sample_weight), request.names)


def check_format(place: str) -> None:
    """Refuse a local place that no data can be opened at, without a look into it."""
    if is_url(place) or glob.has_magic(place):
        return
    _format_of(place)
    if not os.path.exists(place):
        open_source(place)  # which says so


def _format_of(path: str) -> Callable[[tuple[str, ...], Request], Source]:
    name, _ = split_query(path)
    for suffixes, opener in _FORMATS:
        if name.endswith(suffixes):
            return opener
    if is_url(path) or os.path.isdir(path):
        return _open_zarr
    if not os.path.exists(path):
        raise StoreError(f"{path} is missing; check the path")
    known = ", ".join(suffix for suffixes, _ in _FORMATS for suffix in suffixes)
    raise InputError(f"{path} is of no known format; files end in {known}; text is read by nfs_dask.ingest")


def _open_npz(paths: tuple[str, ...], request: Request) -> Source:
    from nfs_dask.sources.npz import NpzSource

    _without_layer("a file of numpy", request)
    return NpzSource(paths, request.labels)


def _open_svmlight(paths: tuple[str, ...], request: Request) -> Source:
    from nfs_dask.sources.svmlight import SvmlightSource

    _without_layer("an svmlight file", request)
    if request.labels is not None:
        raise InputError(f"labels={request.labels!r} was given, but an svmlight file has no columns besides its labels")
    return SvmlightSource(paths, look=request.look)


def _open_h5ad(paths: tuple[str, ...], request: Request) -> Source:
    from nfs_dask.sources.h5ad import H5adSource

    return H5adSource(_only(paths), request.labels, request.layer)


def _open_zarr(paths: tuple[str, ...], request: Request) -> Source:
    from nfs_dask.sources.zarr import ZarrSource

    return ZarrSource(_only(paths), request.labels, request.layer)


_FORMATS: tuple[tuple[tuple[str, ...], Callable[[tuple[str, ...], Request], Source]], ...] = (
    ((".npz", ".npy"), _open_npz),
    ((*SVMLIGHT, *(f"{suffix}.gz" for suffix in SVMLIGHT)), _open_svmlight),
    ((".h5ad",), _open_h5ad),
    ((".zarr",), _open_zarr),
)


def _without_layer(what: str, request: Request) -> None:
    if request.layer is not None:
        raise InputError(f"layer={request.layer!r} was given, but {what} has no layers; leave it out")


def _only(paths: tuple[str, ...]) -> str:
    if len(paths) > 1:
        raise InputError(
            f"{len(paths)} stores were given, {paths[0]} and others; open one, or join them with nfs_dask.ingest"
        )
    return paths[0]
