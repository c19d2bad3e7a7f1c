"""The variance of what speaks for the first class, as features are added one by one. ERR Figures 5 and 6.

Variances are exact; of features taken for uncorrelated, (25); compensated for that, (26) as it is meant; and by (26) as
it is printed, which has a factor m too many.

References: ERR section 4.2.2, Figures 5 and 6, equations (25) and (26).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers import two_classes
from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown

TITLE = "Variances of L12 under both classes against the number of features: four formulas and simulated"
SHOWN = (5, 20, 50, 100, 150, 300, 500)


def run(settings: Settings) -> dict[str, Any]:
    classes, found = two_classes.problem(), {}
    for true, simulated in enumerate(two_classes.both_classes(classes, settings)):
        variances = {name: two_classes.moments(classes, true, name)[1] for name in two_classes.ALL_VARIANCES}
        apart = two_classes.off_by(simulated.variance, variances["exact"], simulated.variance_error)
        found[f"class {true + 1}"] = {
            "variances": variances,
            "simulated": simulated.variance,
            "standard error": simulated.variance_error,
            "most standard errors off": apart.max(),
            "largest at": first_largest(variances["exact"]),
        }
    return {"documents": two_classes.documents(settings), "classes": found}


def first_largest(variances: np.ndarray) -> int:
    """The least number of features that has the largest variance, up to rounding."""
    return int(np.argmax(variances >= variances.max() * (1 - 1e-9)))


def table(values: dict[str, Any]) -> str:
    rows, remarks = [], []
    for name, found in values["classes"].items():
        for variance, of in found["variances"].items():
            rows.append([f"{name}, {variance}", *(f"{of[n]:.3f}" for n in SHOWN)])
        simulated = zip(found["simulated"], found["standard error"], strict=True)
        shown = [f"{variance:.3f} ± {error:.3f}" for variance, error in simulated]
        rows.append([f"{name}, simulated", *(shown[n] for n in SHOWN)])
        remarks.append(
            f"{name}: exact variances are at most {found['most standard errors off']:.2f} standard errors off, and "
            f"largest with {found['largest at']} features."
        )
    return "\n\n".join([markdown(["variance of L12, features", *map(str, SHOWN)], rows), *remarks])


def draw(values: dict[str, Any]) -> Any:
    figure, (row,) = panels(1, 2, width=4, height=3)
    for axes, (name, found) in zip(row, values["classes"].items(), strict=True):
        for variance, look in styles(found["variances"], marks=False).items():
            axes.plot(found["variances"][variance], **look)
        axes.plot(found["simulated"], color="black", linestyle=":", label="simulated")
        axes.set(title=f"documents of {name}", xlabel="features", ylabel="variance of L12")
        axes.set_ylim(0, 1.6 * max(found["simulated"]))  # the printed formula goes far beyond
    legend(figure, row[0], columns=5)
    return figure
