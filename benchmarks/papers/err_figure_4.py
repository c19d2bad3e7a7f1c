"""The mean of what speaks for the first class, as features are added one by one. ERR Figure 4.

References: ERR section 4.2.1, Figure 4, equation (24).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers import two_classes
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import COLORS, panels
from benchmarks.papers.tables import markdown

TITLE = "Means of L12 under both classes against the number of features: predicted and simulated"
SHOWN = (20, 50, 100, 150, 300, 500)


def run(settings: Settings) -> dict[str, Any]:
    classes, found = two_classes.problem(), {}
    for true, simulated in enumerate(two_classes.both_classes(classes, settings)):
        mean = two_classes.moments(classes, true, "exact")[0]
        found[f"class {true + 1}"] = {
            "predicted": mean,
            "simulated": simulated.mean,
            "standard error": simulated.mean_error,
            "most standard errors off": two_classes.off_by(simulated.mean, mean, simulated.mean_error).max(),
            "largest change after 150": np.abs(mean[two_classes.DIFFERENT :] - mean[-1]).max(),
        }
    return {"documents": two_classes.documents(settings), "classes": found}


def table(values: dict[str, Any]) -> str:
    rows = []
    for name, found in values["classes"].items():
        simulated = zip(found["simulated"], found["standard error"], strict=True)
        shown = [f"{mean:.4f} ± {error:.4f}" for mean, error in simulated]
        rows.append([f"{name}, predicted", *(f"{found['predicted'][n]:.4f}" for n in SHOWN), ""])
        off = f"{found['most standard errors off']:.2f}"
        rows.append([f"{name}, simulated", *(shown[n] for n in SHOWN), off])
    head = ["mean of L12, features", *map(str, SHOWN), "most standard errors off, of all 501"]
    most = max(found["largest change after 150"] for found in values["classes"].values())
    return f"{markdown(head, rows)}\n\nAfter feature 150 predicted means change by {most:.0e} at most."


def draw(values: dict[str, Any]) -> Any:
    figure, ((axes,),) = panels(1, 1, width=4.6, height=3.2)
    for (name, found), color in zip(values["classes"].items(), COLORS, strict=False):
        axes.plot(found["predicted"], color=color, label=f"{name}, predicted")
        axes.plot(found["simulated"], color="black", linestyle=":", label="_")
    axes.plot([], [], color="black", linestyle=":", label="simulated")
    axes.set(xlabel="features", ylabel="mean of L12")
    axes.legend()
    return figure
