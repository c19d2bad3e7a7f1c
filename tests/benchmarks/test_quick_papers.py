"""All figures and tables of the papers, in the quick form, on the real sets; those without their set say why."""

import json

import pytest

from benchmarks.choosing import data_folder
from benchmarks.papers import __main__ as command
from benchmarks.papers.experiment import experiments


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not data_folder().is_dir(), reason="no folder of real sets; NFS_DASK_DATA names one")
def test_each_figure_has_a_result_a_table_and_a_picture(tmp_path):
    assert command.main(["--quick", "--results", str(tmp_path), "--generated", str(tmp_path)]) == 0
    for name, module in experiments().items():
        found = json.loads((tmp_path / f"{name}.json").read_text())
        assert found["id"] == name and found["settings"]["quick"] and found["values"]
        assert "skipped" not in found["values"], (name, found["values"])
        assert (tmp_path / f"{name}.md").read_text().count("|") > 6
        if hasattr(module, "draw"):
            assert (tmp_path / f"{name}.png").stat().st_size > 5_000
            assert (tmp_path / f"{name}.svg").read_text().startswith("<?xml")
