"""How far bounds and primal points are apart, for counts that are uniform: NFS Figure 4, NFS20 Figure 3.

Entries of f+ and f- are uniform in [0, 1], then each is divided by its sum; m is 30 and 3,000. For each k there are the
bound psi(k), the paper's guarantee psi(k - 4), the tighter one psi(k - 1), the value of the paper's primal point (the k
largest gains at the last point of bisection), that of the support found here, and the value of a point of the second
dual, with at most two fractions. Values are in nats above the likelihood of no features, and shown per cent of psi(k).

References: NFS section 4.6, Theorems 3.2 and 3.6, Propositions 3.7 to 3.10; NFS20 section 4.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.experiment import Settings
from benchmarks.papers.figures import legend, panels, styles
from benchmarks.papers.tables import markdown
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.solvers.naive_bayes.gains import set_gain
from nfs_dask.solvers.naive_bayes.multinomial import count, solve

TITLE = "Bounds, the paper's primal point and ours against k, on uniform data of 30 and 3,000 features"
SIZES = ("30", "3000")
HOLLOW: dict[str, dict[str, Any]] = {  # so that equal ones are seen
    "paper's point": {"linestyle": "", "markersize": 6, "fillstyle": "none"},
    "ours": {"linestyle": "", "markersize": 2.5},
}
LEAST = 1e-9  # that a picture shows
EQUAL = 1e-10  # values that differ by less, relative to the bound, differ by rounding


def ks(m: int, quick: bool) -> np.ndarray:
    every = 1 if m <= 30 else 50 if quick else 5
    return np.unique(np.concatenate((np.arange(1, min(m, 50) + 1), np.arange(every, m + 1, every))))


def one_size(m: int, settings: Settings) -> dict[str, Any]:
    f = np.random.default_rng([settings.seed, m]).random((2, m))
    f /= f.sum(axis=1, keepdims=True)
    counted = count(f)

    def bound(k: int) -> float:
        return solve(counted, k).bound

    rows = []
    for k in ks(m, settings.quick):
        ours, theirs = solve(counted, k), bisection.solve(f, k)
        rows.append(
            {
                "k": k,
                "bound": ours.bound,
                "four fewer": bound(k - 4),
                "one fewer": bound(k - 1),
                "paper's point": theirs.value,
                "ours": ours.value,
                "second dual": set_gain(f[:, ours.second_dual[0]], ours.second_dual[1]),
            }
        )
    return {key: [row[key] for row in rows] for key in rows[0]}


def run(settings: Settings) -> dict[str, Any]:
    return settings.each(SIZES, lambda m: one_size(int(m), settings))


def gaps(found: dict[str, Any], way: str, least: int = 10) -> np.ndarray:
    """How much less than the bound, relatively, from some k on."""
    k, bound, value = (np.array(found[key]) for key in ("k", "bound", way))
    return np.maximum(1 - value / bound, 0)[k >= least]


def table(values: dict[str, Any]) -> str:
    head = ["m, way", "no gap", "median gap, k ≥ 10", "largest gap, k ≥ 10", "largest gap, k ≥ 2"]
    rows = []
    for m, found in values.items():
        for way in ("paper's point", "ours", "second dual", "one fewer", "four fewer"):
            late, all_k = gaps(found, way), gaps(found, way, 2)
            numbers = (f"{gap:.1e}" for gap in (np.median(late), late.max(), all_k.max()))
            rows.append([f"{int(m):,}, {way}", f"{np.mean(all_k <= EQUAL):.1%}", *numbers])
    return markdown(head, rows)


def thinned(found: dict[str, Any], every: int = 50) -> dict[str, Any]:
    """All small k, and of the others as many as a picture can show."""
    shown = [i for i, k in enumerate(found["k"]) if k <= every or k % every == 0]
    return {key: [column[i] for i in shown] for key, column in found.items()}


def draw(values: dict[str, Any]) -> Any:
    figure, axes = panels(2, 2, height=2.4)
    for (above, below), (m, all_k) in zip(axes, values.items(), strict=True):
        found = thinned(all_k)
        looks = styles(("bound", "four fewer", "paper's point", "ours"))
        for way, look in looks.items():
            smooth = {**look, "marker": ""}
            above.plot(found["k"], 100 * np.array(found[way]) / found["bound"][-1], **smooth)
            gap = np.maximum(1 - np.array(found[way]) / found["bound"], LEAST)
            if way == "bound":
                below.plot([], [], **smooth)  # for the legend
            else:
                below.plot(found["k"], gap, **(smooth if way == "four fewer" else look | HOLLOW[way]))
        above.set(title=f"m = {int(m):,}: value", xlabel="k", ylabel="% of the bound at k = m")
        below.set(title="less than the bound", xlabel="k", ylabel="relative gap", yscale="log", ylim=(LEAST / 2, 2))
        for one in (above, below):
            one.set_xscale("log" if int(m) > 30 else "linear")
    legend(figure, axes[0, 1])
    return figure
