"""How good a choice of features is, in words that need no mathematics: what is proved, and what is not."""

from __future__ import annotations

from nfs_dask.models.model import Model
from nfs_dask.units import several

LIKELIHOOD = "log likelihood"
WHAT_IT_MEANS = {
    LIKELIHOOD: "The log likelihood says how well the model describes the data it was fitted to; larger is better",
    "cost": "The cost says how far the data the model was fitted to lie from the centers of their classes; smaller is "
    "better",
    "predicted error": "The predicted error is how often a model of such probabilities is expected to be wrong; "
    "smaller is better",
}
NOT_PROMISED = (
    "This is about the data the model was fitted to. It does not say how often the model is right about other "
    "documents: that is measured on test data, or by cross-validation."
)


def verdict_of(model: Model) -> str:
    """Whether the choice is proved best, in a few words."""
    evidence = model.evidence
    if len(model.support) == model.n_features:
        return "all features"
    if evidence.certified:
        return "certified: proved best"
    if model.measure == "predicted error":
        return "found by a search"
    return f"at most {number(evidence.gap)} from the best {model.measure} there can be"


def _share_lost(model: Model) -> str:
    """The gap as a share of the objective."""
    share = 100 * model.evidence.gap / (abs(model.evidence.objective) or 1.0)
    return "less than 0.01 %" if share < 0.01 else f"{share:.2g} %"


def facts_of_choice(model: Model) -> list[tuple[str, str]]:
    """Method, k, value, bound and gap, as names and texts."""
    evidence = model.evidence
    facts = [
        ("method", model.method),
        ("features chosen", f"{len(model.support):,} of {model.n_features:,}"),
        ("classes", f"{model.n_classes:,}"),
        (model.measure, number(evidence.objective)),
    ]
    if model.measure != "predicted error" or evidence.certified:
        facts.append(("no other choice is better than", number(_bound(model))))
        facts.append(("gap between the two", number(evidence.gap)))
    return [*facts, ("verdict", verdict_of(model))]


def certificate_in_words(model: Model) -> list[str]:
    """The certificate as sentences: what was chosen, how sure that is, and what is not promised."""
    k, m, evidence = len(model.support), model.n_features, model.evidence
    chosen = several(k, "feature", "features")
    meaning = WHAT_IT_MEANS[LIKELIHOOD if _is_likelihood(model) else model.measure]
    said = [f"The {model.method} model goes by {chosen} of {m:,}. {meaning}."]
    if k == m:
        said.append("All features were taken, so that there was nothing to choose.")
    elif evidence.certified:
        said.append(_proved(model, k))
    elif model.measure == "predicted error":
        said.append(f"A search found this choice; another one of {chosen} may have a smaller predicted error.")
    else:
        said.append(
            f"No other choice of {chosen} is better by more than {number(evidence.gap)}, "
            f"which is {_share_lost(model)} of the {model.measure}. The choice may be the best: "
            "it is not proved to be, and no other one can beat it by more than that."
        )
    return [*said, NOT_PROMISED]


def number(value: float) -> str:
    """A number for people.

    >>> number(-138.3372), number(0.0), number(1e-9), number(1234567.0)
    ('-138.337', '0', '1e-09', '1,234,567.000')
    """
    return "0" if value == 0 else f"{value:,.3f}" if 0.01 <= abs(value) < 1e12 else f"{value:.3g}"


def _proved(model: Model, k: int) -> str:
    return (
        f"It is certified: among all choices of {several(k, 'feature', 'features')} none has a better {model.measure}, "
        "up to rounding. This is proved by a bound that no choice exceeds, and not by trying."
    )


def _bound(model: Model) -> float:
    """What no other choice is better than."""
    evidence = model.evidence
    return evidence.best if _is_likelihood(model) else evidence.objective - evidence.gap


def _is_likelihood(model: Model) -> bool:
    """Whether the objective is a log likelihood, of whatever it may be."""
    return model.measure.endswith(LIKELIHOOD)
