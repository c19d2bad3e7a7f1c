"""Where displays draw: new figures, axes of others, panels in their place, and without matplotlib."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots.drawing import panels


def test_without_axes_pyplot_has_a_new_figure() -> None:
    axes = panels(None, 2, 3, size=(4, 3))
    assert len(axes) == 6 and plt.get_fignums() == [axes[0].figure.number]


def test_panels_share_the_place_of_axes_and_are_found_again() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    box = left.get_position()
    made = panels(left, 2, size=(1, 1))
    for one in made:
        inside = one.get_position()
        assert box.x0 - 1e-9 <= inside.x0 and inside.x1 <= box.x1 + 1e-9
        assert box.y0 - 1e-9 <= inside.y0 and inside.y1 <= box.y1 + 1e-9
    assert not left.axison and right.axison
    assert panels(left, 2, size=(1, 1)).tolist() == panels(made[0], 2, size=(1, 1)).tolist() == made.tolist()
    assert len(figure.axes) == 4 and plt.get_fignums() == []


def test_axes_that_were_placed_by_hand_and_those_of_a_part_of_a_figure_are_divided_too() -> None:
    figure = Figure()
    ax = figure.add_axes((0.1, 0.2, 0.3, 0.4))
    made = panels(ax, 2, size=(1, 1))
    assert made[0].get_position().x0 == pytest.approx(0.1) and made[1].get_position().y0 == pytest.approx(0.2)
    part = Figure().subfigures(1, 2)[1]
    confusion = nfs.plots.ConfusionDisplay(confusion=[[3, 1], [0, 2]], labels=["a", "b"]).plot(part.subplots())
    assert confusion.figure_ is part


def test_what_is_no_axes_is_refused() -> None:
    figure = Figure()
    several = figure.subplots(1, 3)
    with pytest.raises(InputError, match="ax is a Figure; give Axes"):
        panels(figure, size=(1, 1))
    with pytest.raises(InputError, match="ax is a list; give Axes"):
        panels([1, 2], 2, size=(1, 1))
    with pytest.raises(InputError, match="3 axes for 2 panels"):
        panels(several, 2, size=(1, 1))
    assert panels(several, 1, 3, size=(1, 1)).tolist() == several.tolist()


WITHOUT = """
import json, sys
sys.modules["matplotlib"] = None
import nfs_dask as nfs
try:
    nfs.plots.FeaturesDisplay.from_estimator(None)
except nfs.InputError as error:
    print(json.dumps([str(error), nfs.plots.CoverageDisplay(coverage=[1], accuracy=[0.5]).n]))
"""
LAZY = """
import json, sys
import nfs_dask as nfs
assert "plots" in dir(nfs) and "PathDisplay" in dir(nfs.plots)
light = sorted({"matplotlib", "sklearn", "dask", "numba"} & set(sys.modules))
for name in nfs.plots.__all__:
    assert getattr(nfs.plots, name).__name__ == name
print(json.dumps([light, "matplotlib" in sys.modules]))
"""


def run(script: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    found: list[object] = json.loads(done.stdout)
    return found


def test_without_matplotlib_the_message_says_what_to_install() -> None:
    assert run(WITHOUT) == ['drawing needs matplotlib, which is not installed; pip install "nfs-dask[plots]"', None]


def test_neither_the_module_nor_its_classes_load_matplotlib() -> None:
    assert run(LAZY) == [[], False]


def test_an_unknown_display_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'PieDisplay'"):
        _ = nfs.plots.PieDisplay


def test_the_gallery_is_the_same_each_time(tmp_path: Path) -> None:
    import runpy

    gallery = runpy.run_path(str(Path(nfs.__file__).parent.parent / "docs" / "gallery.py"))
    drawn = gallery["draw"](tmp_path, only=["confusion"])
    again = gallery["draw"](tmp_path / "again", only=["confusion"])
    assert [file.name for file in drawn] == ["confusion.png"]
    assert np.array_equal(plt.imread(drawn[0]), plt.imread(again[0]))
    covered = {name.removesuffix("Display").lower() for name in nfs.plots.__all__}
    assert covered == set(gallery["PICTURES"])
