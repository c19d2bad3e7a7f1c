"""Selected columns of any matrix, in the container it came in, and back. Nothing of the full width is ever dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure, check_values, safe_to_compute, without_zeros
from nfs_dask.arrays.kernels import first_refused
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.containers import is_collection, library_of
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.prediction.counted_rows import Csr, as_scipy, joined, narrowed, no_rows
from nfs_dask.prediction.lazy_chunks import heights, map_chunks, partitions
from nfs_dask.prediction.model_rows import Asked, ModelRows, ReadDocuments, mapping_over, parts_of
from nfs_dask.prediction.reader import Reader, TextSource, partition_source
from nfs_dask.sources.matrix_source import MatrixSource


def select(X: Any, support: Array, engine: Engine | None = None) -> Any:
    """The columns ``support`` (ascending) of X.

    Sparse in, sparse out; numpy and data frames give numpy; a Dask collection stays one, lazily; a `Dataset` gives a
    scipy CSR array, and so do texts with a reader, of a Dask collection lazily.
    """
    if isinstance(X, (Dataset, ReadDocuments)):
        return _select_by_tasks(X, support, engine)
    if isinstance(X, TextSource):
        return _select_texts(X, support)
    if is_collection(X):
        return _select_lazily(X, support)
    return select_matrix(X, support)


def restore(Z: Any, support: Array, n_features: int) -> Any:
    """The inverse of `select`: columns that were not selected are empty. Sparse, whatever comes in."""
    if Z.shape[1] != len(support):
        raise InputError(f"X has a different shape than during fitting: {Z.shape[1]} columns, not {len(support)}")
    if is_collection(Z):
        return _map_chunks(Z.rechunk({1: -1}), _restore_task, (support, n_features), n_features)
    return _restore_matrix(Z, support, n_features)


def side_by_side(matrices: Sequence[Any]) -> Any:
    """Matrices of the same rows as one: a dask array of dask arrays, numpy of dense ones, else a scipy CSR array."""
    if any(is_collection(X) for X in matrices):
        return _lazily_side_by_side(matrices)
    heights = [X.shape[0] for X in matrices]
    if len(set(heights)) > 1:
        raise InputError(f"the matrices have {heights} rows; give the same documents to each, in the same order")
    if any(_is_sparse(X) for X in matrices):
        widths = [X.shape[1] for X in matrices]
        parts = [_csr(X, np.arange(width)) for X, width in zip(matrices, widths, strict=True)]
        return as_scipy(_side_by_side(parts), sum(widths))
    return np.concatenate([np.asarray(X) for X in matrices], axis=1)


def lazy_frame(Z: Any, names: Array) -> Any:
    """A Dask collection as a Dask data frame, with one partition for each row of chunks."""
    import dask.dataframe as dd
    from dask.array.utils import meta_from_array

    if hasattr(Z, "columns"):
        return Z.rename(columns=dict(zip(Z.columns, names, strict=True)))
    meta = meta_from_array(Z)
    if not isinstance(meta, np.ndarray):
        raise InputError(
            f"the selected columns are sparse, chunks of {type(meta).__name__}, and no frame holds them; give "
            "dense chunks, or set the output back with set_output(transform='default')"
        )
    return dd.from_dask_array(Z, columns=names.tolist())


def _select_texts(texts: TextSource, support: Array) -> Any:
    if not is_collection(texts.given):
        return as_scipy(_select_csr(texts, support), len(support))
    reader, k = texts.reader.for_tasks(), len(support)
    meta = as_scipy(no_rows(reader.features.settings), k)
    return map_chunks(partitions(texts.given), select_partition, reader, "columns", meta=meta, width=k)


def select_partition(reader: Reader, partition: Any, number: int) -> Any:
    """One lazy chunk: the selected columns of the texts of a partition."""
    return _select_texts(partition_source(reader, partition, number), reader.model.support)


def select_matrix(X: Any, support: Array) -> Any:
    """`select` of a matrix in memory. Values have to be finite."""
    if (values := _stored_by_column(X)) is not None and first_refused(values, non_negative=False) < 0:
        taken = X[:, support]
        if isinstance(taken, np.ndarray):
            return np.asarray(taken)
        csr = taken.tocsr()
        return _like(X, (csr.indptr, csr.indices, csr.data), len(support))
    source = MatrixSource(X)
    blocks = list(_selected(source, support, 0, source.n_blocks))
    if blocks[0].full:
        return np.concatenate([block.matrix for block in blocks])
    return _like(X, joined([_csr_of(block) for block in blocks]), len(support))


def _stored_by_column(X: Any) -> Array | None:
    """The values of a matrix whose columns lie together, so that rows would be dear; None for others."""
    if getattr(X, "dtype", None) not in (np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_) or not X.size:
        return None
    if isinstance(X, np.ndarray):
        return X.ravel("K") if X.ndim == 2 and X.flags.f_contiguous else None
    return X.data if library_of(X) == "scipy" and X.format == "csc" else None


def _selected(source: ModelRows, support: Array, start: int, stop: int) -> Iterator[Block]:
    """Some blocks, checked, with the selected columns alone."""
    lookup = Lookup.of(support, source.n_features)
    for block in source.blocks(start, stop):
        check_structure(block)
        if not source.trusted:
            check_values(block, "signed")
        yield lookup.take(block)


def _csr_of(block: Block) -> Csr:
    """Its entries, without the zeros of a full one."""
    block = without_zeros(block)
    return narrowed((block.indptr, block.indices, block.data), block.n_features)


def _select_csr(source: ModelRows, support: Array, start: int = 0, stop: int | None = None) -> Csr:
    """The selected columns of some blocks, all of them if not said otherwise."""
    return joined([_csr_of(block) for block in _selected(source, support, start, stop or source.n_blocks)])


def _like(X: Any, csr: Csr, width: int, dense: bool = True) -> Any:
    """A matrix of these rows in the container of X; with ``dense``, a dense one for whatever is not sparse."""
    from scipy import sparse

    indptr, indices, data = narrowed(csr, width)
    shape = (len(indptr) - 1, width)
    library = library_of(X)
    if library == "sparse":
        import sparse as pydata

        found = pydata.GCXS((data, indices, indptr), shape=shape, compressed_axes=[0])
        return found.tocoo() if isinstance(X, pydata.COO) else found
    kind = sparse.csr_matrix if isinstance(X, sparse.spmatrix) else sparse.csr_array
    out = kind((data, indices, indptr), shape=shape)
    if library == "scipy" or not dense or _is_sparse_frame(X):
        return out
    return np.asarray(out.todense())  # as many columns as were selected


def _is_sparse(X: Any) -> bool:
    return library_of(X) in ("scipy", "sparse") or _is_sparse_frame(X)


def _is_sparse_frame(X: Any) -> bool:
    return hasattr(X, "dtypes") and hasattr(X, "iloc") and all(hasattr(t, "fill_value") for t in X.dtypes)


def _restore_matrix(Z: Any, support: Array, n_features: int) -> Any:
    source = MatrixSource(Z)
    csr = joined([_original(block, support) for block in source.blocks(0, source.n_blocks)])
    return _like(Z, csr, n_features, dense=False)


def _original(block: Block, support: Array) -> Csr:
    check_structure(block)
    block = without_zeros(block)
    return block.indptr, support[block.indices], block.data


def _select_by_tasks(asked: Asked, support: Array, engine: Engine | None) -> Any:
    with mapping_over(asked, engine) as mapping:
        return as_scipy(
            joined(mapping(select_block, [(*part, support) for part in parts_of(asked, mapping)])), len(support)
        )


def select_block(item: tuple[ModelRows, int, int, Array]) -> Csr:
    """One task: the selected columns of some blocks."""
    source, start, stop, support = item
    indptr, indices, data = _select_csr(source, support, start, stop)
    return indptr, indices, safe_to_compute(data)


def _lazily_side_by_side(matrices: Sequence[Any]) -> Any:
    if not all(is_collection(X) and hasattr(X, "chunks") for X in matrices):
        raise InputError(
            "some of the matrices are dask arrays and others are not; give dask arrays for all, or matrices in memory; "
            "X.to_dask_array(lengths=True) makes one of a dask DataFrame"
        )
    import dask.array as da

    return da.concatenate(matrices, axis=1, allow_unknown_chunksizes=True)


def _select_lazily(X: Any, support: Array) -> Any:
    if hasattr(X, "columns"):
        return X.iloc[:, support.tolist()]
    return _map_chunks(X, _select_task, support, len(support))


def _map_chunks(X: Any, task: Callable[..., Any], shared: Any, width: int) -> Any:
    """A lazy array with one chunk for each row of chunks of X, of the type that its chunks have."""
    from dask.array.utils import meta_from_array

    parts = X.to_delayed(optimize_graph=False).tolist()  # optimisation would drop the futures of persisted chunks
    return map_chunks(parts, task, shared, "columns", rows=heights(X), meta=meta_from_array(X), width=width)


def _select_task(support: Array, chunks: list[Any], number: int) -> Any:  # noqa: ARG001 - partitions have one
    """The selected columns of chunks that lie side by side."""
    if len(chunks) == 1:
        return select_matrix(chunks[0], support)
    inside, first = [], 0
    for chunk in chunks:
        last = first + chunk.shape[1]
        inside.append(support[np.searchsorted(support, first) : np.searchsorted(support, last)] - first)
        first = last
    if not any(map(_is_sparse, chunks)):
        return np.concatenate([select_matrix(*one) for one in zip(chunks, inside, strict=True)], axis=1)
    parts = [_csr(*one) for one in zip(chunks, inside, strict=True)]
    return _like(chunks[0], _side_by_side(parts), len(support))


def _side_by_side(parts: list[Any]) -> Csr:
    from scipy import sparse

    out = sparse.hstack(parts, format="csr")
    return out.indptr, out.indices, out.data


def _csr(chunk: Any, columns: Array) -> Any:
    return as_scipy(_select_csr(MatrixSource(chunk), columns), len(columns))


def _restore_task(into: tuple[Array, int], chunks: list[Any], number: int) -> Any:  # noqa: ARG001 - as above
    assert len(chunks) == 1, "restore is given whole rows"
    return _restore_matrix(chunks[0], *into)
