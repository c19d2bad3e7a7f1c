"""The table of faults: its quick rows, all of them where asked for, and what the page says of them.

``python -m tests.faults`` does the slow ones, and prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.registry import ROWS
from tests.faults.table import REFUSED, SAME, Fault, Undisturbed, carry_out, rows_of
from tests.helpers.places import ROOT

PAGE = ROOT / "docs" / "faults.md"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def undisturbed_here(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory.mktemp("quick-faults"), quick=True)


@pytest.fixture
def fresh_s3() -> Iterator[None]:
    """No file system of other tests in this process, and none of these for others."""
    import fsspec

    fsspec.get_filesystem_class("s3").clear_instance_cache()
    yield
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.mark.usefixtures("fresh_s3")
@pytest.mark.parametrize("fault", [fault for fault in ROWS if fault.quick], ids=lambda fault: fault.id)
def test_in_one_process(fault: Fault, tmp_path: Path, undisturbed_here: Undisturbed) -> None:
    assert carry_out(fault, tmp_path, undisturbed_here).verdict in (SAME, REFUSED)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.id)
def test_with_real_processes(fault: Fault, tmp_path: Path, undisturbed: Undisturbed) -> None:
    if missing := fault.missing():
        pytest.skip(f"this machine lacks {missing}")
    assert carry_out(fault, tmp_path, undisturbed).verdict in (SAME, REFUSED)


def test_the_page_has_these_rows_in_these_words() -> None:
    page = PAGE.read_text()
    assert [tuple(cells[:3]) for cells in rows_of(page)] == [(row.name, row.happens, row.todo) for row in ROWS]
    timed = [cells[3] for cells, row in zip(rows_of(page), ROWS, strict=True) if row.timed]
    assert all(cell.rstrip(")").replace(" (", "").isdigit() for cell in timed), "each has its costs"
    assert "`python -m tests.faults`" in page


def test_each_row_has_a_name_of_its_own() -> None:
    assert len({row.id for row in ROWS}) == len({row.name for row in ROWS}) == len(ROWS)
