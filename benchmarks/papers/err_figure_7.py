"""Errors against the number of features: predicted by means and variances, and of simulated documents. ERR Figure 7.

References: ERR section 4.2.3, Figure 7, equations (26), (33) and (34).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers import two_classes
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown

TITLE = "Error against the number of features: predicted with four variances, and simulated"
SHOWN = (1, 5, 20, 50, 100, 150, 300, 500)


def run(settings: Settings) -> dict[str, Any]:
    classes, n = two_classes.problem(), two_classes.documents(settings)
    simulated, error = two_classes.wrong(two_classes.both_classes(classes, settings), n)
    predicted = {name: two_classes.errors(classes, name) for name in two_classes.ALL_VARIANCES}
    return {
        "documents": n,
        "predicted": predicted,
        "simulated": simulated,
        "standard error": error,
        "largest difference": {name: np.abs(of - simulated).max() for name, of in predicted.items()},
        "at": {name: np.abs(of - simulated).argmax() for name, of in predicted.items()},
    }


def relative(values: dict[str, Any]) -> list[float]:
    """Exact predictions divided by what is simulated."""
    return [of / share for of, share in zip(values["predicted"]["exact"], values["simulated"], strict=True)]


def table(values: dict[str, Any]) -> str:
    rows = [
        [
            f"predicted, {name}",
            *(f"{of[n]:.4f}" for n in SHOWN),
            f"{values['largest difference'][name]:.4f} ({values['at'][name]})",
        ]
        for name, of in values["predicted"].items()
    ]
    shown = [f"{share:.4f}" for share in values["simulated"]]
    rows.append([f"simulated, ± {max(values['standard error']):.4f} at most", *(shown[n] for n in SHOWN), ""])
    times = relative(values)
    rows.append(["predicted, exact / simulated", *(f"{times[n]:.3f}" for n in SHOWN), ""])
    return markdown(["error, features", *map(str, SHOWN), "largest difference (features)"], rows)


def draw(values: dict[str, Any]) -> Any:
    figure, ((left, right),) = panels(1, 2, width=4, height=3)
    for name, look in styles(values["predicted"], marks=False).items():
        left.plot(values["predicted"][name], **look)
        right.plot(np.array(values["predicted"][name]) - values["simulated"], **look)
    left.plot(values["simulated"], color="black", linestyle=":", label="simulated")
    left.set(xlabel="features", ylabel="error", ylim=(0, 0.52))
    right.set(xlabel="features", ylabel="error less the simulated one")
    legend(figure, left, columns=5)
    return figure
