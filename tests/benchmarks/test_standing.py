"""Who is ahead, counted from results."""

import json

from benchmarks.papers import accuracy_and_time as grid
from benchmarks.papers import nfs_figure_2_left, nfs_standing
from benchmarks.papers.choosers import CHOOSERS, FAST, OURS
from benchmarks.papers.experiment import Settings


def write(folder, name, ways, shares, measures, accuracy):
    """One set, 80 texts that judge: a standard error of 0.05 at an accuracy of 0.75."""
    cells = {way: {str(share): {key: [accuracy(way, share)] for key in measures} for share in shares} for way in ways}
    facts = {"n": 200, "judge": 40, "splits": 2, "m": 9, "alpha": 1.0}
    found = {"command": name, "values": {"toys, counts": facts | {"ways": cells}, "lost": {"skipped": "no set"}}}
    (folder / f"{name}.json").write_text(json.dumps(found))


def test_cases_are_counted_by_way_and_share(tmp_path):
    def accuracy(way, share):
        return {"chi2": 0.79 if share < 0.01 else 0.81, "odds ratio": 0.69, OURS: 0.75}.get(way, 0.71)

    shares = nfs_figure_2_left.SHARES
    write(tmp_path, "nfs-figure-2-left", FAST, shares, ["accuracy"], accuracy)
    for name in ("nfs-figure-1", "nfs-figure-1-all-sets"):
        write(tmp_path, name, CHOOSERS, grid.SHARES, grid.SECOND, accuracy)
    file = tmp_path / "nfs-figure-1.json"
    found = json.loads(file.read_text())
    found["values"]["toys, counts"]["ways"]["RFE SVM"]["0.1"] = {}
    file.write_text(json.dumps(found))
    values = nfs_standing.run(Settings(tmp_path, results_folder=tmp_path))
    shown = nfs_standing.table(values)
    assert "| chi2 | 0 / 1 / 0 | 0 / 1 / 0 | 0 / 1 / 0 | 0 / 0 / 1 |" in shown
    assert "| odds ratio | 1 / 0 / 0 | 1 / 0 / 0 | 1 / 0 / 0 | 1 / 0 / 0 |" in shown
    assert shown.count("| chi2 | 0 / 2 / 0 | 0 / 0 / 2 | 0 / 0 / 2 | 0 / 0 / 2 |") == 1
    assert values["two stages"]["SVM"]["RFE SVM"] == {
        "0.001": [0, 2, 0],
        "0.01": [0, 2, 0],
        "0.05": [0, 2, 0],
        "0.1": [0, 1, 0],
    }


def test_as_many_texts_judge_as_there_are():
    assert nfs_standing.texts({"n": 200, "judge": 40, "splits": 3}) == 120
    assert nfs_standing.texts({"n": 200, "judge": 40, "splits": 30}) == 240
