"""How much of the package a reader meets who follows a call: the modules that it enters, and their lines.

    python benchmarks/walks.py
    python benchmarks/walks.py --list "predict(list of str)"

Each walk is made twice, on small data, and the second time functions are noted as they are called, in all threads; so
what only importing does is left out, and what is made once for a process. The workers of ``fit --scheduler`` are
threads of this process, behind a scheduler with an address, so that what they run counts too. Compiled loops are not
seen: the modules that call them are. Lines are those of whole files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import nfs_dask
from nfs_dask.cli.main import cli

PACKAGE = Path(nfs_dask.__file__).parent
ROWS, TERMS, WORDS, K = 2_000, 5_000, 12, 100

Walk = Callable[[], Any]


class Walked:
    """Notes which functions of the package are called, in any thread, while it is watching."""

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = defaultdict(set)
        self._watching = False
        threading.settrace(self._note)  # of threads that are yet to start

    def _note(self, frame: Any, _event: str, _argument: Any) -> None:
        code = frame.f_code
        if self._watching and code.co_name != "<module>" and code.co_filename.startswith(str(PACKAGE)):
            self.functions[str(Path(code.co_filename).relative_to(PACKAGE))].add(code.co_name)

    def follow(self, walk: Walk) -> dict[str, set[str]]:
        """The functions that a call enters, by module."""
        self.functions.clear()
        self._watching = True
        sys.settrace(self._note)
        try:
            walk()
        finally:
            sys.settrace(None)
            self._watching = False
        return {module: set(names) for module, names in sorted(self.functions.items())}


def texts(seed: int = 0) -> tuple[list[str], list[str]]:
    """Reviews, and what they are: the words of one kind are a little more frequent in it."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(TERMS)])
    kinds = rng.integers(2, size=ROWS)
    ranks = (TERMS * rng.random((ROWS, WORDS)) ** 3).astype(int)
    ranks += (ranks + kinds[:, None]) % 2 * (rng.random(ranks.shape) < 0.3)
    return [" ".join(row) for row in words[np.minimum(ranks, TERMS - 1)]], ["bad good".split()[kind] for kind in kinds]


def matrix() -> tuple[Any, Any]:
    given, labels = texts()
    rows = np.repeat(np.arange(ROWS), WORDS)
    columns = [int(word[1:]) for text in given for word in text.split()]
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(ROWS, TERMS)), np.array(labels)


def _run(*arguments: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.main([str(argument) for argument in arguments], standalone_mode=False)


def ingest(folder: Path, _stack: contextlib.ExitStack) -> Walk:
    lines = [f"{text},{label}" for text, label in zip(*texts(), strict=True)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return lambda: _run("ingest", folder / "reviews.csv", folder / "store.zarr", "--label-column", "label")


def _store(folder: Path) -> nfs_dask.Dataset:
    given, labels = texts()
    return nfs_dask.ingest(given, folder / "store.zarr", labels=labels)


def fit_scheduler(folder: Path, stack: contextlib.ExitStack) -> Walk:
    from distributed import LocalCluster

    _store(folder)
    cluster = stack.enter_context(
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://", dashboard_address=":0")
    )
    scheduler = cluster.scheduler_address
    return lambda: _run("fit", folder / "store.zarr", folder / "model", "-k", K, "--scheduler", scheduler)


def fit_in_memory(_folder: Path, _stack: contextlib.ExitStack) -> Walk:
    X, y = matrix()
    return lambda: nfs_dask.SparseMultinomialNB(K).fit(X, y)


def cross_validate(_folder: Path, _stack: contextlib.ExitStack) -> Walk:
    X, y = matrix()
    return lambda: nfs_dask.cross_validate(X, y, method="multinomial", ks=[10, K], folds=3)


def predict_texts(folder: Path, _stack: contextlib.ExitStack) -> Walk:
    model = nfs_dask.SparseMultinomialNB(K).fit(_store(folder))
    new = texts(seed=1)[0]
    return lambda: model.predict(new)


def l1_centers(_folder: Path, _stack: contextlib.ExitStack) -> Walk:
    X, y = matrix()
    return lambda: nfs_dask.SparseCentroid(K, metric="manhattan").fit(X, y)


WALKS: dict[str, Callable[[Path, contextlib.ExitStack], Walk]] = {
    "ingest reviews.csv": ingest,
    "fit --scheduler": fit_scheduler,
    "fit(csr, y)": fit_in_memory,
    "cross_validate": cross_validate,
    "predict(list of str)": predict_texts,
    "l1 centers": l1_centers,
}


def walked(prepare: Callable[[Path, contextlib.ExitStack], Walk], notes: Walked) -> dict[str, set[str]]:
    """What a walk enters, when it is made for the second time in a process."""
    for follow in (lambda walk: walk(), notes.follow):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            found = follow(prepare(Path(folder), stack))
    return found


def n_lines(module: str) -> int:
    return len((PACKAGE / module).read_text().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="WALK", choices=WALKS, help="Name the modules of one walk, and functions.")
    options = parser.parse_args()
    notes = Walked()
    if options.list is not None:
        for module, functions in walked(WALKS[options.list], notes).items():
            print(f"{module} ({n_lines(module)}): {', '.join(sorted(functions))}")
        return
    print("| walk | modules | lines |\n| --- | --- | --- |")
    for name, prepare in WALKS.items():
        modules = walked(prepare, notes)
        print(f"| `{name}` | {len(modules)} | {sum(map(n_lines, modules)):,} |", flush=True)


if __name__ == "__main__":
    main()
