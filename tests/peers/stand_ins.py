"""Our estimators under the names and parameters of scikit-learn's, for scikit-learn's own tests of these."""

from __future__ import annotations

from typing import Any

from nfs_dask import SparseBernoulliNB, SparseCentroid, SparseMultinomialNB, TextVectorizer


class MultinomialNB(SparseMultinomialNB):
    """Naive Bayes of all features."""

    def __init__(self, *, alpha: Any = 1.0, force_alpha: Any = True, fit_prior: Any = True, class_prior: Any = None):
        super().__init__("all", alpha=alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.force_alpha = force_alpha  # ours never changes what it was given


class BernoulliNB(SparseBernoulliNB):
    """Naive Bayes of all features."""

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: Any = True,
        binarize: Any = 0.0,
        fit_prior: Any = True,
        class_prior: Any = None,
    ):
        super().__init__("all", alpha=alpha, binarize=binarize, fit_prior=fit_prior, class_prior=class_prior)
        self.force_alpha = force_alpha


class NearestCentroid(SparseCentroid):
    """The nearest center by all features."""

    def __init__(self, metric: Any = "euclidean", *, shrink_threshold: Any = None, priors: Any = "uniform"):
        if shrink_threshold is not None or not isinstance(priors, str) or priors != "uniform":
            raise NotImplementedError("ours has k instead of a threshold, and classes are as likely as each other")
        super().__init__("all", metric=metric)
        self.shrink_threshold, self.priors = shrink_threshold, priors


class CountVectorizer(TextVectorizer, auto_wrap_output_keys=None):
    """Counts of terms."""

    def __init__(
        self,
        *,
        lowercase: Any = True,
        strip_accents: Any = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: Any = r"(?u)\b\w\w+\b",
        ngram_range: Any = (1, 1),
        analyzer: Any = "word",
        max_df: Any = 1.0,
        min_df: Any = 1,
        max_features: Any = None,
        vocabulary: Any = None,
        binary: Any = False,
    ):
        given = {name: value for name, value in locals().items() if name not in ("self", "ngram_range", "__class__")}
        super().__init__(ngrams=ngram_range, **given)
        self.ngram_range = ngram_range

    def build_analyzer(self) -> Any:
        raise NotImplementedError("ours reads texts in compiled code, and hands out no functions that do it in steps")

    build_preprocessor = build_tokenizer = build_analyzer

    def set_params(self, **parameters: Any) -> Any:
        if "ngram_range" in parameters:
            self.ngrams = parameters["ngram_range"]
        return super().set_params(**parameters)


class TfidfVectorizer(CountVectorizer, auto_wrap_output_keys=None):
    """Tf-idf weights."""

    def __init__(
        self,
        *,
        lowercase: Any = True,
        strip_accents: Any = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: Any = r"(?u)\b\w\w+\b",
        ngram_range: Any = (1, 1),
        analyzer: Any = "word",
        max_df: Any = 1.0,
        min_df: Any = 1,
        max_features: Any = None,
        vocabulary: Any = None,
        binary: Any = False,
        norm: Any = "l2",
        sublinear_tf: Any = False,
    ):
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        norm, sublinear_tf = given.pop("norm"), given.pop("sublinear_tf")
        super().__init__(**given)
        self.tfidf, self.norm, self.sublinear_tf = True, norm, sublinear_tf


class Classifier(SparseCentroid):
    """A classifier with weights and probabilities, for any other; parameters it has not are passed over."""

    def __init__(self, C: Any = 1.0, random_state: Any = None, **others: Any):
        super().__init__("all", metric="mahalanobis", variance_floor=1e-3)
        self.C, self.random_state = C, random_state


class SelectKBest(SparseCentroid):
    """The k features that tell classes apart best."""

    def __init__(self, score_func: Any = None, *, k: Any = 10):
        super().__init__(k, metric="mahalanobis")
        self.score_func = score_func
