"""Stores, models and runs that were changed at random, and what becomes of whoever reads them.

    python mutating.py FOLDER SEED COUNT      the outcomes that are neither right nor an error of ours, as JSON

Runs in a process of its own, with little memory and time for each look.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.engine.run_status import read_run
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import NfsDaskError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import SEAL, with_seal
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Layout
from nfs_dask.store.model_files import read_model
from nfs_dask.store.shards import ArrayWriter, ShardReader
from nfs_dask.store.states import checksum, write_arrays
from nfs_dask.store.writer import write_store
from nfs_dask.summary import summarize, summarize_model

SECONDS = 30.0  # for a look; of a machine that has much else to do
MEMORY = 1 << 30  # bytes beyond what the libraries take
SMALL = Layout(chunk=16, shard=64, row_chunk=8, row_shard=32, block=50)
COUNTS = ClassCounts(2, with_documents=True)
RNG = np.random.default_rng(0)
X = sparse.csr_array(RNG.poisson(0.4, (60, 12)))
Y = np.array(["no", "yes"])[RNG.integers(2, size=60)]
TEXTS = [f"word{i % 5} word{i % 3} common" for i in range(30)]


def make(place: Path) -> None:
    """One of each kind."""
    write_store(open_source(X, Y), place / "store", layout=SMALL, names=[f"w{i}" for i in range(12)])
    write_store(open_source(X * 0.5, sample_weight=RNG.random(60)), place / "bare", layout=SMALL)
    dataset = nfs.open_dataset(place / "store")
    dataset.reduce(COUNTS, SerialEngine())
    nfs.SparseMultinomialNB(k=4).fit(dataset).save(place / "model")
    nfs.SparseCentroid(k=4).fit(dataset).save(place / "centers")
    nfs.ingest(TEXTS, place / "texts", labels=[i % 2 for i in range(30)], tfidf=True, engine=SerialEngine())
    nfs.SparseMultinomialNB(k=3).fit(nfs.open_dataset(place / "texts")).save(place / "textmodel")
    SerialEngine(run=str(place / "run"), panels=2).reduce(COUNTS, open_source(place / "store"))


def plain(value: Any) -> Any:
    return json.loads(
        json.dumps(value, default=lambda found: found.tolist() if hasattr(found, "tolist") else str(found))
    )


def store_look(place: Path) -> Any:
    dataset = nfs.open_dataset(place)
    facts = {**summarize(dataset).to_json(), "nbytes": 0, "statistics": []}  # those that are gone are made again
    blocks = [
        (b.indptr, b.indices, b.data, b.codes, b.weights) for b in dataset.source.blocks(0, dataset.source.n_blocks)
    ]
    state = dataset.reduce(COUNTS, SerialEngine()).state if dataset.classes is not None else None
    return facts, blocks, None if state is None else (state.arrays, state.totals), dataset.names(np.arange(3))


def model_look(place: Path) -> Any:
    estimator = nfs.load_model(place)
    text = read_model(place)[0].text is not None
    return {**summarize_model(place).to_json(), "nbytes": 0}, estimator.predict(TEXTS[:5] if text else X[:5])


def run_look(place: Path) -> Any:
    state = SerialEngine(run=str(place), panels=2).reduce(COUNTS, open_source(place.parent / "store")).state
    return read_run(place).fingerprint, state.arrays, state.totals  # how far it is, files that are gone say otherwise


LOOKS: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys(("store", "bare", "texts"), store_look),
    **dict.fromkeys(("model", "centers", "textmodel"), model_look),
    "run": run_look,
}

ODD = [None, -1, 0, 0.5, 2**40, 2**70, -(2**70), 1e300, float("nan"), True, "x", "", "é" * 99, [], {}, [[1]], {"a": 1}]


def change_json(path: Path, rng: np.random.Generator) -> str | None:
    """Another value, or none, somewhere in a JSON file; half of the time with checksums that fit again."""
    try:
        root = json.loads(path.read_bytes())
    except ValueError:
        return None
    nodes: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            nodes.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if not isinstance(root, (dict, list)):
        return None
    walk(root)
    if not nodes:
        return None
    parent, key = nodes[int(rng.integers(len(nodes)))]
    odd = ODD[int(rng.integers(len(ODD)))]
    what = f"{key} = {odd!r:.30}"
    if isinstance(parent, dict) and rng.random() < 0.2:
        del parent[key]
        what = f"no {key}"
    else:
        parent[key] = odd
    signed = rng.random() < 0.6
    if signed:
        root = sign(root)
    path.write_text(json.dumps(root))
    return f"{what}{', signed' if signed else ''}"


def sign(node: Any) -> Any:
    """With checksums that fit, of all objects that have one."""
    if isinstance(node, dict):
        inner = {key: sign(value) for key, value in node.items()}
        return with_seal(inner) if SEAL in inner else inner
    return [sign(one) for one in node] if isinstance(node, list) else node


def change_bytes(path: Path, rng: np.random.Generator) -> str:
    content = bytearray(path.read_bytes())
    for at in rng.integers(0, max(1, len(content)), 3).tolist() if content else []:
        content[at] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return "flipped bits"


def truncate(path: Path, rng: np.random.Generator) -> str:
    os.truncate(path, int(rng.integers(0, 1 + path.stat().st_size)))
    return "truncated"


def grow(path: Path, rng: np.random.Generator) -> str:
    os.truncate(path, 1 << 38)
    return "256 GiB, sparse"


def replaced(path: Path, rng: np.random.Generator) -> str:
    path.unlink()
    what = ("nothing", "a folder", "a pipe", "a link to itself", "a link to nowhere", "an empty file")[
        int(rng.integers(6))
    ]
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what.startswith("a link"):
        path.symlink_to(path if "itself" in what else path.with_name("nowhere"))
    elif what == "an empty file":
        path.touch()
    return what


def change_values(place: Path, rng: np.random.Generator) -> str | None:
    """Other numbers in an array, under checksums that fit."""
    if place.name in ("store", "bare", "texts"):
        folder = Folder(str(place))
        arrays = [one for one in read_header(folder).numbers() if one.length]
        numbers = arrays[int(rng.integers(len(arrays)))]
        values = ShardReader(folder, numbers).read(0, numbers.length).copy()
        disturb(values, rng)
        with ArrayWriter(folder, numbers) as writer:
            writer.add(values)
        return f"values of {numbers.name}"
    if place.name == "run":
        return None
    header = json.loads((place / "model.json").read_text())
    _, _ = read_model(place)
    name = sorted(header["arrays"])[int(rng.integers(len(header["arrays"])))]
    shape = header["arrays"][name]
    values = rng.random(shape) if rng.random() < 0.5 else rng.integers(-5, 20, shape)
    disturb(values, rng)
    values = values.astype(rng.choice(["f8", "f4", "i8", "i4", "u1"])) if rng.random() < 0.5 else values
    written = write_arrays(Folder(str(place)) / header["arrays_in"], {name: values})
    header["checksums"][name] = written[name]
    assert checksum(values) == written[name] or values.dtype == np.int64  # which are stored in fewer bytes
    (place / "model.json").write_text(json.dumps(with_seal(header)))
    return f"values of {name}, {values.dtype}"


def disturb(values: Any, rng: np.random.Generator) -> None:
    flat = values.reshape(-1)
    odd = [np.nan, np.inf, -1.0, 1e300] if values.dtype.kind == "f" else [-1, 2, 10**6, 2**31 - 1, 2**62]
    with np.errstate(all="ignore"):
        for at in rng.integers(0, len(flat), 2).tolist():
            flat[at] = np.array(odd[int(rng.integers(len(odd)))]).astype(values.dtype)


class Late(BaseException):
    """A look took longer than it may."""


def late(*_: Any) -> None:
    raise Late


def outcome(kind: str, place: Path, want: Any, may_differ: bool) -> str | None:
    """What is wrong with what a look at a mutated place came to; None: nothing."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        found = plain(LOOKS[kind](place))
    except NfsDaskError as error:
        return None if str(place.parent) in str(error) or may_differ else f"names no place: {error}"
    except Late:
        return "late"
    except BaseException:  # whatever it is
        return traceback.format_exc()[-1500:]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if may_differ or anywhere(found) == anywhere(want):
        return None
    return f"a wrong answer: {found}"


def mutate(kind: str, place: Path, rng: np.random.Generator) -> tuple[str, bool] | None:
    """Change something; what, and whether it is a forgery, about which one may be mistaken."""
    if rng.random() < 0.15:
        what = change_values(place, rng)
        return None if what is None else (what, True)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    path = files[int(rng.integers(len(files)))]
    ways: list[Callable[..., str | None]] = [change_bytes, truncate, grow, replaced]
    way = change_json if path.suffix == ".json" and rng.random() < 0.7 else ways[int(rng.integers(len(ways)))]
    what = way(path, rng)
    return None if what is None else (f"{path.relative_to(place)}: {what}", what.endswith("signed"))


def main(folder: str, seed: str, count: str) -> None:
    sound, place = Path(folder) / "sound", Path(folder) / "mutated"
    make(sound)
    for kind, look in LOOKS.items():
        look(sound / kind)  # the first leaves statistics behind
    want = {kind: plain(look(sound / kind)) for kind, look in LOOKS.items()}
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGALRM, late)
    rng, bad, done = np.random.default_rng(int(seed)), [], 0
    while done < int(count):
        kind = list(LOOKS)[int(rng.integers(len(LOOKS)))]
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sound / "store", place / "store")
        if kind != "store":
            shutil.copytree(sound / kind, place / kind)
        mutation = mutate(kind, place / kind, rng)
        if mutation is None:
            continue
        done += 1
        what, forged = mutation
        problem = outcome(kind, place / kind, want[kind], forged)
        if problem is not None:
            bad.append({"kind": kind, "mutation": what, "problem": problem})
    print(json.dumps(bad))


def anywhere(answer: Any) -> str:
    """An answer as text, where NaN is NaN, wherever the places lie that it names."""
    return json.dumps(answer).replace("/mutated", "/sound")


if __name__ == "__main__":
    main(*sys.argv[1:])
