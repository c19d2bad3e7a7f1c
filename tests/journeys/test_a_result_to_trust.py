"""Somebody who must trust the result: how sure it is, whether it comes out again, and what a killed process costs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.enumeration import best_gain
from tests.helpers.journeys import Journey
from tests.helpers.places import ROOT

pytestmark = pytest.mark.slow

ROWS, FEATURES, K = 400, 12, 4
CERTIFIED = f"""
import numpy as np

import nfs_dask as nfs

rng = np.random.default_rng(0)
side = np.arange({ROWS}) % 2
X = rng.poisson(rng.gamma(1.0, size=(2, {FEATURES}))[side])
X[:, 11] = X[:, 8]  # nobody can tell these two apart
dataset = nfs.ingest(X, "counts.zarr", labels=np.array(["left", "right"])[side])
np.save("counts.npy", X)

model = nfs.SparseMultinomialNB(k={K}, alpha=0).fit(dataset)
everything = nfs.SparseMultinomialNB(k="all", alpha=0).fit(dataset)
print("objective", model.objective_, "bound", model.upper_bound_, "gap", model.dual_gap_, model.certified_)
print("best of all", everything.objective_)
print("chosen", model.get_support(indices=True).tolist(), "and as good:", model.ties_.tolist())
print(nfs.path(dataset, "multinomial", ks=[1, 2, 4, 8, "all"]))
"""
CHOSEN = """
import nfs_dask as nfs

dataset = nfs.open_dataset("counts.zarr")
print(nfs.cross_validate(dataset, method="multinomial", ks=[2, 4, 8, 12], folds=5))
k = nfs.path(dataset, "multinomial").choose("1se")
print(k, k.interval)
print(k.why_)
"""
TWICE = f"""
import nfs_dask as nfs

dataset = nfs.open_dataset("counts.zarr", reuse=False)
for _ in range(2):
    model = nfs.SparseMultinomialNB(k={K}).fit(dataset)
    print(model.objective_.hex(), model.feature_log_prob_.sum().hex())
"""


def numbers_after(word: str, shown: str) -> float:
    return float(re.search(rf"\b{word} (-?[\d.e+-]+)", shown)[1])


def test_certificates_bounds_ties_and_choices(journey: Journey) -> None:
    shown = journey.python(CERTIFIED)
    X = np.load(journey.folder / "counts.npy")
    totals = np.array([X[side::2].sum(axis=0) for side in (0, 1)])
    objective, bound = numbers_after("objective", shown), numbers_after("bound", shown)
    most = numbers_after("best of all", shown)
    lost = best_gain(totals, FEATURES) - best_gain(totals, K)  # by enumeration
    assert objective - 1e-6 <= most - lost <= bound + 1e-6
    chosen, ties = re.search(r"chosen \[(.*)\] and as good: \[(.*)\]", shown).groups()
    assert "8" in chosen.split(", ") and ties == "11"
    assert journey.fits(shown)

    rules = journey.python(CHOSEN)
    assert re.search(r"(?m)^\d+ \(\d+, \d+\)$", rules) and "standard error" in rules
    lines = journey.python(TWICE).strip().splitlines()
    assert len(lines) == 2 and lines[0] == lines[1] and lines[0].startswith("-0x")
    assert journey.minutes < 2


def test_what_a_killed_process_costs(journey: Journey) -> None:
    """What it had finished is not done again, and the result is that of a process that was left alone."""
    words = [f"word{i}" for i in range(30_000)]
    lines = np.random.default_rng(0).choice(words, (4000, 40))
    part = "".join(f"{('ham', 'spam')[i % 2]},{' '.join(line)}\n" for i, line in enumerate(lines))
    (journey.folder / "mail.csv").write_text("folder,text\n" + part * 70)

    typed = ["ingest", "mail.csv", "--label-column", "folder", "mail.zarr"]
    program = [sys.executable, str(ROOT / "tests/helpers/nfs.py")]
    kept = journey.folder / ".mail.zarr.ingest"
    with subprocess.Popen([*program, *typed], cwd=journey.folder, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: any(kept.glob("*-*.json")) or process.poll() is not None)
        process.kill()
    assert kept.exists() and not (journey.folder / "mail.zarr").exists()
    again = journey.shell(f"nfs-dask {' '.join(typed)}")
    assert "going on with the ingest begun in" in again and journey.fits(again)

    journey.shell(f"nfs-dask {' '.join(typed[:-1])} alone.zarr")
    assert contents(journey.folder / "mail.zarr") == contents(journey.folder / "alone.zarr")


def wait_for(there) -> None:
    deadline = time.monotonic() + 100
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def contents(store: Path) -> dict[str, bytes]:
    """The arrays of a store; root metadata say when it was made."""
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("c/*") if path.is_file()}
