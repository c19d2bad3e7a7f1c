"""Costs of a cluster are measured wherever a fit runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers.commands import as_json, run


def test_data_whose_whole_state_does_not_fit_a_worker_are_calibrated(tmp_path: Path) -> None:
    """Twelve million features are counted in panels by workers of 800 MiB, which cannot hold a state of all of them."""
    rows = np.random.default_rng(0).integers(1, 12_000_000, (2000, 50))
    lines = [f"{i % 2} " + " ".join(f"{column}:1" for column in np.unique(row)) for i, row in enumerate(rows)]
    data, costs = tmp_path / "wide.svmlight", tmp_path / "costs.json"
    data.write_text("\n".join([*lines, "0 12000000:1"]) + "\n")
    where = ("--workers", 2, "--memory-limit", "800MiB")
    run("plan", data, *where, "--calibrate", costs)
    told = as_json("plan", data, *where, "--costs", costs)
    assert told["strategy"] == "scatter" and told["forecast"]["seconds"] > 0
