"""The client of `scaling.py`, on a host of its own: passes over stores, and what they took, one JSON object a line.

python benchmarks/watched.py ADDRESS --data DIR --workers 4 --gbit 1 --cases small large
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
from cases import Case, store_of

from nfs_dask import DaskEngine, SparseMultinomialNB, open_dataset
from nfs_dask.engine.calibrate import watched_pass
from nfs_dask.engine.cost_model import Hosts
from nfs_dask.files.folder import Folder

WIDE = 100_000_000
STORES = {
    "2m-small": Case(800_000, 2_000_000),
    "12m-small": Case(800_000, 12_080_000),
    "100m-small": Case(1_000_000, WIDE, words=25.5),
    "2m-large": Case(6_400_000, 2_000_000),
    "12m-large": Case(6_400_000, 12_080_000),
    "100m-large": Case(4_000_000, WIDE, words=25.5),
}
WAYS = {  # panels: one whole state, as many as memory asks for, or as many as 400 workers would have
    "small": [("2m", 1), ("12m", 1), ("12m", None), ("12m", 100), ("100m", None), ("100m", 400)],
    "large": [("2m", 1), ("12m", 1), ("12m", None), ("100m", None), ("100m", 400)],
}


FAR = [("2m", 1), ("12m", None), ("12m", 40)]
REPEATS, MOST_REPEATS = 2, 3  # of a pass, of which the fastest counts; more than usual while there is company
COMPANY = 0.2  # of the processors, that others may take meanwhile


def counters() -> dict[str, float]:
    """Of this process and the host that it is on."""
    card = psutil.net_io_counters(pernic=True)["eth0"]
    times = psutil.Process().cpu_times()
    return {"sent": card.bytes_sent, "received": card.bytes_recv, "processor": times.user + times.system}


def busy_seconds() -> float:
    """Of all processors of this machine, whoever kept them busy."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait)


def everywhere(client: Any) -> dict[str, dict[str, float]]:
    workers = client.run(counters).values()
    together = {name: sum(one[name] for one in workers) for name in counters()}
    return {"workers": together, "scheduler": client.run_on_scheduler(counters), "client": counters()}


def watched(client: Any, name: str, panels: int | None, data: Path | str, hosts: Hosts) -> dict[str, Any]:
    """One pass: its work, hosts and phases, and what went over links and processors meanwhile."""
    dataset = open_dataset(f"{data}/{name}.zarr", reuse=False)
    before, busy, started = everywhere(client), busy_seconds(), time.perf_counter()
    engine = DaskEngine(panels=panels, workers=hosts.workers, spool=f"{data}/spool" if hosts.far else None)
    pass_ = watched_pass(client, dataset.class_counts(), dataset.source, engine, hosts, dataset.beside)
    after, busy, seconds = everywhere(client), busy_seconds() - busy, time.perf_counter() - started
    used = {who: {what: after[who][what] - n for what, n in of.items()} for who, of in before.items()}
    others = (busy - sum(of["processor"] for of in used.values())) / seconds / (psutil.cpu_count() or 1)
    return {"case": name, **asdict(pass_), "used": used, "company": round(others, 3)}


def solved(name: str, data: Path) -> dict[str, Any]:
    """A fit whose statistics are kept already: what is left is the choice of features."""
    dataset = open_dataset(store_of(STORES[name], data / f"{name}.zarr"))
    dataset.reduce(dataset.class_counts())
    started = time.perf_counter()
    SparseMultinomialNB(k=0.001).fit(dataset)
    return {"case": name, "n_features": dataset.n_features, "solve": time.perf_counter() - started}


def answering_seconds(url: str) -> float:
    """How long a store takes for a small request; the median of some."""
    folder, times = Folder.of(f"{url}/2m-small.zarr"), []
    for _ in range(100):
        started = time.perf_counter()
        folder.read("zarr.json", 0, 1000)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def keep_workers(client: Any, number: int) -> None:
    """Retire those that are too many, and wait for those that are to come."""
    client.wait_for_workers(number, timeout=120)
    present = sorted(client.scheduler_info(n_workers=-1)["workers"])
    if len(present) > number:
        client.retire_workers(present[number:], close_workers=True)
    while len(client.scheduler_info(n_workers=-1)["workers"]) > number:
        time.sleep(0.1)


def main() -> None:
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", nargs="?", help="of a scheduler")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gbit", type=float, help="of each link; what is not given is as fast as the machine")
    parser.add_argument("--size", default="large", choices=list(WAYS))
    parser.add_argument(
        "--url", help="of the data in an object store, on one more host; else they are on a shared disk"
    )
    parser.add_argument("--solve", action="store_true", help="choose features instead, without the cluster")
    options = parser.parse_args()
    if options.solve:
        for name in STORES:
            print(json.dumps(solved(name, options.data)), flush=True)
        return
    network = None if options.gbit is None else options.gbit * 1e9
    hosts = Hosts(options.workers, 1, cores=psutil.cpu_count(), network=network)
    if options.url is not None:
        assert network is not None
        latency = answering_seconds(options.url)
        hosts = replace(hosts, far=True, store=network / 8, latency=latency)
    data = options.url or options.data
    with Client(options.address) as client:
        keep_workers(client, options.workers)
        for name, panels in (("2m", 1), ("12m", None)):  # so that workers have imported and compiled what they need
            watched(client, f"{name}-small", panels, data, hosts)
        for name, panels in FAR if options.url else WAYS[options.size]:
            for done in range(1, MOST_REPEATS + 1):
                found = watched(client, f"{name}-{options.size}", panels, data, hosts)
                print(json.dumps(found), flush=True)
                if done >= REPEATS and found["company"] < COMPANY:
                    break


if __name__ == "__main__":
    main()
