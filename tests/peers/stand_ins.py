"""Our estimators under the names and parameters of scikit-learn's, for scikit-learn's own tests of these."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        input: Any = "content",  # noqa: A002 - their name
        encoding: Any = "utf-8",
        preprocessor: Any = None,
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
        dtype: Any = np.int64,
    ):
        self.input, self.encoding, self.preprocessor, self.dtype = input, encoding, preprocessor, dtype
        self.ngram_range = ngram_range
        super().__init__(
            lowercase=lowercase,
            strip_accents=strip_accents,
            tokenizer=tokenizer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngrams=ngram_range,
            analyzer=analyzer,
            max_df=max_df,
            min_df=min_df,
            max_features=max_features,
            vocabulary=vocabulary,
            binary=binary,
        )

    def build_analyzer(self) -> Any:
        raise NotImplementedError("ours reads texts in compiled code, and hands out no functions that do it in steps")

    build_preprocessor = build_tokenizer = build_analyzer

    @property
    def fixed_vocabulary_(self) -> bool:
        return self.vocabulary is not None

    def _terms(self) -> Any:
        """Theirs may be set at any time."""
        self.ngrams = self.ngram_range
        wanted = (self.input, self.encoding, self.preprocessor)
        if wanted != ("content", "utf-8", None) or self.dtype != type(self)().dtype:
            raise NotImplementedError("ours takes strings, splits them by its own means, and counts in int64")
        return super()._terms()


class TfidfVectorizer(CountVectorizer, auto_wrap_output_keys=None):
    """Tf-idf weights."""

    def __init__(
        self,
        *,
        input: Any = "content",  # noqa: A002 - their name
        encoding: Any = "utf-8",
        preprocessor: Any = None,
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
        dtype: Any = np.float64,
        norm: Any = "l2",
        use_idf: Any = True,
        smooth_idf: Any = True,
        sublinear_tf: Any = False,
    ):
        given = locals()
        super().__init__(**{name: given[name] for name in CountVectorizer._get_param_names()})
        self.tfidf, self.norm, self.sublinear_tf = True, norm, sublinear_tf
        self.use_idf, self.smooth_idf = use_idf, smooth_idf

    def _terms(self) -> Any:
        if not (self.use_idf and self.smooth_idf):
            raise NotImplementedError("ours smooths idf as theirs does, and has no weights without it")
        return super()._terms()


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
