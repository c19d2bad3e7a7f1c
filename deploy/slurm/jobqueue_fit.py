"""A fit on workers that SLURM starts when there is work, and ends when there is none: dask-jobqueue.

    python jobqueue_fit.py STORE MODEL RUN -k 1000 --queue normal --interface ib0 --most-workers 32

It runs where sbatch can be called from: on a login node, in a notebook's terminal, or as a small job of its own. Given
again with the same run folder, it goes on where it was.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Client

import nfs_dask as nfs


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("model")
    parser.add_argument("run", help="a folder that all nodes share; what was counted is kept there")
    parser.add_argument("-k", type=int, default=1000, help="features to keep")
    parser.add_argument("--queue", help="the partition of the workers")
    parser.add_argument("--account")
    parser.add_argument("--interface", help="the network between nodes, such as ib0")
    parser.add_argument("--most-workers", type=int, default=8)
    parser.add_argument("--memory", default="4GiB", help="of each worker, as nfs-dask plan has it")
    parser.add_argument("--walltime", default="01:00:00", help="of each worker's job")
    parser.add_argument("--lifetime", default="55m", help="after which a worker hands over; less than the walltime")
    parser.add_argument("--lifetime-stagger", default="3m")
    parser.add_argument("--scratch", default=tempfile.gettempdir(), help="a fast disk of each node")
    parser.add_argument("--logs", default="logs", help="a folder for what workers print")
    return parser.parse_args()


def slurm_cluster(given: argparse.Namespace) -> SLURMCluster:
    """A scheduler here, and a job for each worker, with TLS between all of them by certificates made for the occasion.

    Workers read their certificate and its key from files beside the run, which only their owner can read, and which
    go with the cluster.
    """
    return SLURMCluster(
        queue=given.queue,
        account=given.account,
        cores=1,
        memory=given.memory,  # Dask's limit of the worker; SLURM gives a GiB more, for what the limit does not count
        job_mem=f"{megabytes(given.memory) + 1024}M",
        walltime=given.walltime,
        interface=given.interface,
        security=True,
        shared_temp_directory=str(Path(given.run).resolve().parent),
        job_script_prologue=[
            "export PYTHONSAFEPATH=1",  # jobs begin in the current folder, and nothing in it is to be imported
            # a folder of its own for each worker, which goes with it, however it ends
            f"scratch=$(mktemp -d -p {shlex.quote(given.scratch)} nfs-dask-XXXXXX)",
            "trap 'rm -rf \"$scratch\"' EXIT",
        ],
        local_directory="$scratch",
        log_directory=given.logs,
        death_timeout=300,
        worker_extra_args=[
            *("--no-dashboard", "--lifetime", given.lifetime, "--lifetime-stagger", given.lifetime_stagger)
        ],
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
    )


def megabytes(size: str) -> int:
    """A size such as 4GiB in units of 2^20 bytes, which is what SLURM calls M."""
    from dask.utils import parse_bytes

    return -(-parse_bytes(size) // 2**20)


def main() -> None:
    """Fit, and leave neither jobs nor certificates behind, also when SIGTERM ends this."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with slurm_cluster(given) as cluster, Client(cluster):
        cluster.adapt(minimum=0, maximum=given.most_workers)  # passes are planned for the maximum
        dataset = nfs.open_dataset(given.store)
        model = nfs.SparseMultinomialNB(k=given.k, engine=nfs.DaskEngine(run=given.run)).fit(dataset)
        model.save(given.model)
        print(f"{given.model} written, objective {model.objective_:.3f}")


if __name__ == "__main__":
    main()
