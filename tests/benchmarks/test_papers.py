import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.papers import __main__ as command
from benchmarks.papers import experiment, figures
from benchmarks.papers.experiment import Missing, Settings, experiments, left_out, there
from benchmarks.papers.page import filled

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "papers.md", ROOT / "benchmarks" / "results" / "papers"


def square(settings: Settings) -> dict[str, Any]:
    def of(name: str) -> dict[str, Any]:
        if name == "absent":
            raise Missing("it never was")
        return {"square": np.float64(name) ** 2, "quick": settings.quick}

    return settings.each(["2", "absent", "3"], of)


def draw(values: dict[str, Any]) -> Any:
    figure, axes = figures.panels(1, 1)
    axes[0, 0].plot([found["square"] for found in there(values).values()], **figures.styles(["squares"])["squares"])
    return figure


def table(values: dict[str, Any]) -> str:
    return "".join(f"| {name} | {found['square']} |\n" for name, found in there(values).items()) + left_out(values)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    toy = SimpleNamespace(TITLE="Squares", run=square, table=table, draw=draw)
    monkeypatch.setattr(command, "experiments", lambda: {"toy": toy})
    return toy


def test_a_run_leaves_a_result_with_its_settings_a_table_and_pictures(toy, tmp_path):
    assert command.main(["toy", "--quick", "--seed", "5", "--results", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "toy.json").read_text())
    assert found["settings"] == {"quick": True, "seed": 5}
    assert found["command"] == "python -m benchmarks.papers toy --quick --seed 5"
    assert found["versions"]["numpy"] == np.__version__ and found["machine"]["cores"] >= 1
    assert found["values"]["3"] == {"square": 9.0, "quick": True}
    assert "absent: it never was" in (tmp_path / "toy.md").read_text()
    assert {file.suffix for file in tmp_path.glob("toy.*")} == {".json", ".md", ".svg", ".pdf", ".png"}


def test_redrawing_computes_nothing_and_draws_the_same(toy, tmp_path):
    command.main(["--results", str(tmp_path)])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    toy.run = None
    assert command.main(["--redraw", "--results", str(tmp_path)]) == 0
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_experiment_without_its_data_says_why(toy, tmp_path, capsys):
    def run(settings: Settings) -> dict[str, Any]:
        raise Missing("no such set")

    toy.run = run
    assert command.main(["--results", str(tmp_path)]) == 0
    assert "skipped: no such set" in capsys.readouterr().out


def test_a_run_that_was_stopped_goes_on_where_it_was(toy, tmp_path):
    asked = []

    def interrupted(settings: Settings) -> dict[str, Any]:
        return settings.each(["2", "3"], lambda name: asked.append(name) or {"2": {"square": 4}}[name])

    toy.run = interrupted
    with pytest.raises(KeyError):
        command.main(["--results", str(tmp_path)])
    assert command.main(["--minutes", "0", "--results", str(tmp_path)]) == 3
    toy.run = lambda settings: settings.each(["2", "3"], lambda name: asked.append(name) or {"square": 9})
    assert command.main(["--results", str(tmp_path)]) == 0
    assert asked == ["2", "3", "3"]
    assert json.loads((tmp_path / "toy.json").read_text())["values"] == {"2": {"square": 4}, "3": {"square": 9}}


def test_a_run_may_take_what_there_is_and_have_the_rest_later(toy, tmp_path):
    asked = []
    toy.run = lambda settings: settings.each(["2", "3"], lambda name: asked.append(name) or {"square": int(name) ** 2})
    assert command.main(["--minutes", "0", "--partly", "--results", str(tmp_path)]) == 0
    assert not asked and "3: there was no time left for it" in (tmp_path / "toy.md").read_text()
    assert command.main(["--partly", "--results", str(tmp_path)]) == 0
    assert command.main(["--minutes", "0", "--results", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "toy.json").read_text())
    assert asked == ["2", "3"] and found["values"]["3"] == {"square": 9}


def test_a_result_says_what_all_its_pieces_took_of_the_processor(toy, tmp_path):
    def run(settings: Settings) -> dict[str, Any]:
        begin = time.process_time()
        while time.process_time() < begin + 0.3:
            pass
        return settings.each(["2"], lambda name: {"square": 4})

    toy.run = run
    assert command.main(["--minutes", "0", "--results", str(tmp_path)]) == 3
    assert command.main(["--results", str(tmp_path)]) == 0
    assert 0.6 <= json.loads((tmp_path / "toy.json").read_text())["processor"] < 6
    assert command.took("nfs-table-4", toy, command.PUBLISHED / "papers").endswith(" min of clock)")
    assert command.took("toy", toy, tmp_path).startswith(" (full: 0.0 min of processor")
    assert command.took("other", toy, tmp_path) == ""


def test_a_page_is_filled_from_results(toy, tmp_path):
    command.main(["--results", str(tmp_path)])
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- toy -->\nold\n<!-- end of toy -->\nafter\n<!-- other -->\n<!-- end of other -->\n")
    for _ in range(2):  # the second time changes nothing
        command.main(["--page", str(page), "--results", str(tmp_path)])
        text = page.read_text()
        assert "`python -m benchmarks.papers toy`\n\n| 2 | 4.0 |" in text and "old" not in text
        assert "![Squares](figures/toy.svg)" in text and text.startswith("Before") and "after\n<!-- other -->" in text
    assert (tmp_path / "figures" / "toy.svg").exists()


def test_the_page_about_the_papers_says_what_results_say():
    text = PAGE.read_text()
    assert all(f"<!-- {name} -->" in text and (RESULTS / f"{name}.json").exists() for name in experiments())
    assert filled(text, experiments(), RESULTS) == text
    for name, module in experiments().items():
        assert not hasattr(module, "draw") or (PAGE.parent / "figures" / f"{name}.svg").exists()


def test_unknown_names_are_refused(toy, capsys):
    assert command.main(["toyy"]) == 2
    assert "toyy" in capsys.readouterr().err


@pytest.mark.parametrize("name", experiments())
def test_each_experiment_is_whole(name):
    module = experiments()[name]
    assert module.TITLE and callable(module.run) and callable(module.table)
    assert "figure" not in name or callable(module.draw)
    assert name.split("-")[0] in experiment.PAPERS
