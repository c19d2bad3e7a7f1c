"""The methods there are, and the rules that choose k. Whatever lists them, or takes one by its name, reads this.

A method is a name, an estimator with some of its parameters fixed, the parameters that the command line has options
for, and the family of models it leaves behind. Estimators and families are named here and imported when they are used,
so that ``--help`` loads none of them. What an estimator can do besides is said by its class: `rank` makes paths,
`recipe` cross-validates, `predicted_errors` is a rule for k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from nfs_dask.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Option:
    """A parameter of an estimator as the command line has it."""

    parameter: str
    help: str
    kind: Any = (
        float  # or int, "k", a tuple of words, "names" (repeatable), "numbers" (a list), "by class", what a flag sets
    )
    metavar: str | None = None
    flag: str | None = None  # where it is not the name of the parameter
    least: int | None = None  # of numbers
    counts: bool = False  # whether what is read depends on it, so that plans do
    gains: bool = False  # whether gains depend on it, so that paths do

    @property
    def name(self) -> str:
        """As it is typed."""
        return self.flag or f"--{self.parameter.replace('_', '-')}"


@dataclass(frozen=True)
class Method:
    """A method by its name in commands and models."""

    name: str
    estimator: str  # module:class, of scikit-learn's kind, for users
    plain: str  # module:class that it is made of, which does without scikit-learn
    family: str  # module:class, of its models in files
    what: str  # it is of
    certain: str  # about it
    options: tuple[Option, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters of the estimator
    instead_of_paths: str | None = None  # what to do where features have no order; None: there are paths

    @property
    def parameters(self) -> set[str]:
        """Those of the estimator that may be given."""
        return {"k", "engine", *(option.parameter for option in self.options)}

    def estimator_class(self) -> Any:
        return _found(self.estimator)

    def plain_class(self) -> Any:
        return _found(self.plain)


K = Option("k", 'Features: how many, a share, or "all".  [default: 10; hybrid: all]', "k", "K", "-k")
ALPHA = Option("alpha", "Naive Bayes: smoothing of each count.  [default: 1]", metavar="A", least=0, gains=True)
BINARIZE = Option(
    "binarize", "Bernoulli: values above T count as present.", metavar="T", least=0, counts=True, gains=True
)
COVARIANCE = Option(
    "covariance",
    "Mahalanobis: variances about the centers or the mean, or a whole matrix.  [default: within]",
    ("within", "total", "full"),
    counts=True,
    gains=True,
)
VARIANCE_FLOOR = Option(
    "variance_floor", "Mahalanobis: least variance.  [default: 0]", metavar="V", least=0, gains=True
)
SOLVER = Option("solver", "Multinomial: the paper's is bisection.", ("cuts", "bisection"))
ALWAYS = Option("always", "A feature that is chosen in any case; repeatable.", "names", "NAME")
FIT_PRIOR = Option(
    "fit_prior", "Naive Bayes: take all classes to be as likely beforehand.", False, flag="--no-fit-prior"
)
CLASS_PRIOR = Option(
    "class_prior",
    "Naive Bayes: priors, such as spam=0.2,ham=0.8 or uniform, or in the order of the sorted classes.",
    "by class",
    "C=P,...",
)
CLASS_WEIGHT = Option(
    "class_weight", "What documents of a class count, such as spam=5, or balanced.", "by class", "C=W,..."
)
REGIONS = Option("regions", "Hybrid: column ranges of one vocabulary.", int, "R", least=1, counts=True)
RIDGE = Option("ridge", "Hybrid: penalty of squared slopes.  [default: 0.001]", metavar="X", least=0)
NORMALIZE = Option(
    "normalize", "Hybrid: do not divide by the number of words of a region.", False, flag="--no-normalize"
)
PRIOR = Option("prior", "Hybrid: of the classes.  [default: fitted]", ("fitted", "fixed"))
TABLES = Option("tables", "Hybrid: of words.  [default: shared]", ("shared", "separate"))
SEARCH = Option(
    "search",
    "Error: how to look for features.  [default: ranked]",
    ("ranked", "best-individual", "forward", "plus-minus", "floating", "bounded"),
)
ADD = Option("add", "Error: features plus-minus adds.  [default: 2]", int, "N", least=0)
DROP = Option("drop", "Error: and takes away again.  [default: 1]", int, "N", least=0)
BALANCED = Option(
    "balanced", "Error: predict it under the priors, and not under equal ones.", False, flag="--unbalanced"
)
N_TOKENS = Option("n_tokens", "Error: lengths of documents.  [default: as those of the fit]", "numbers", "M,M,...")

_BY_CLASS = (FIT_PRIOR, CLASS_PRIOR, CLASS_WEIGHT)
_NAIVE_BAYES = "nfs_dask.models.families:NaiveBayesFamily"
_CENTERS = "nfs_dask.models.families:CentersFamily"
_ESTIMATORS = "nfs_dask.estimators.scikit_learn"
_OF_CENTERS = (f"{_ESTIMATORS}:SparseCentroid", "nfs_dask.estimators.centers:CentersClassifier", _CENTERS)
_CHOICE_IS_BEST = "no other k features are better"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "multinomial",
            f"{_ESTIMATORS}:SparseMultinomialNB",
            "nfs_dask.estimators.multinomial:MultinomialClassifier",
            _NAIVE_BAYES,
            "counts, such as of words",
            "a bound: no other k features are better by more than `dual_gap_`, zero where the choice is proved best",
            (ALPHA, SOLVER, ALWAYS, *_BY_CLASS),
        ),
        Method(
            "bernoulli",
            f"{_ESTIMATORS}:SparseBernoulliNB",
            "nfs_dask.estimators.bernoulli:BernoulliClassifier",
            _NAIVE_BAYES,
            "what is there, and what not",
            _CHOICE_IS_BEST,
            (ALPHA, BINARIZE, ALWAYS, *_BY_CLASS),
        ),
        Method("l2", *_OF_CENTERS, "values of any sign", _CHOICE_IS_BEST, (ALWAYS,), {"metric": "euclidean"}),
        Method(
            "mahalanobis",
            *_OF_CENTERS,
            "values of any sign",
            _CHOICE_IS_BEST,
            (COVARIANCE, VARIANCE_FLOOR, ALWAYS),
            {"metric": "mahalanobis"},
        ),
        Method("l1", *_OF_CENTERS, "values of any sign", _CHOICE_IS_BEST, (ALWAYS,), {"metric": "manhattan"}),
        Method(
            "hybrid",
            f"{_ESTIMATORS}:HybridNB",
            "nfs_dask.estimators.hybrid:HybridClassifier",
            "nfs_dask.models.families:HybridFamily",
            "counts in regions, such as subject and body",
            "its few fitted numbers are the best; with `k`, words as the first",
            (ALPHA, REGIONS, RIDGE, NORMALIZE, PRIOR, TABLES, CLASS_WEIGHT),
            instead_of_paths="try several k with nfs_dask.cross_validate",
        ),
        Method(
            "error",
            f"{_ESTIMATORS}:ErrorRateSelector",
            "nfs_dask.estimators.predicted_error:PredictedErrorClassifier",
            _NAIVE_BAYES,
            "counts",
            'with `search="bounded"` no other k features have a smaller predicted error; else it is a search',
            (ALPHA, *_BY_CLASS, SEARCH, ADD, DROP, BALANCED, N_TOKENS),
            instead_of_paths="fit an ErrorRateSelector, whose errors_ are of many k",
        ),
    )
}


@dataclass(frozen=True)
class Rule:
    """A way to choose k from a path."""

    name: str
    place: str  # module:function of the data of a path, the path and the options that were given
    reads: bool = True  # the data again
    takes: frozenset[str] = frozenset({"ks"})  # options of `Path.choose`, besides the engine

    def function(self) -> Any:
        return _found(self.place)


MEASURES = ("accuracy", "balanced", "log_loss")  # what cross-validation can go by

_VALIDATION = frozenset({"ks", "folds", "alphas", "by"})
_RULES = "nfs_dask.selection.rules"

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("elbow", f"{_RULES}:by_elbow", reads=False, takes=frozenset()),
        Rule("error", f"{_RULES}:by_error"),
        Rule("1se", f"{_RULES}:within_one_error", takes=_VALIDATION),
        Rule("cv", f"{_RULES}:by_accuracy", takes=_VALIDATION),
        Rule("near", f"{_RULES}:near_the_best", takes=_VALIDATION | {"within"}),
    )
}


def rule_named(name: Any) -> Rule:
    """The rule of a name."""
    found = RULES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"rule={name!r}; give one of {', '.join(map(repr, RULES))}{did_you_mean(name, RULES)}")
    return found


def method_named(name: Any) -> Method:
    """The method of a name."""
    found = METHODS.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"method={name!r}; give one of {', '.join(map(repr, METHODS))}{did_you_mean(name, METHODS)}")
    return found


def methods_of_paths() -> tuple[str, ...]:
    """Names of the methods whose features have an order, so that there are paths."""
    return tuple(name for name, method in METHODS.items() if method.instead_of_paths is None)


def takers(parameter: str) -> str:
    """Names of the methods that take a parameter, in words."""
    return " and ".join(name for name, method in METHODS.items() if parameter in method.parameters)


def options_of_all() -> tuple[Option, ...]:
    """Options of all methods, each once, in the order in which methods have them."""
    return tuple(dict.fromkeys(option for method in METHODS.values() for option in method.options))


def family_of(method: str) -> Any:
    """How models of a method are kept in files."""
    return _found(METHODS[method].family)()


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
