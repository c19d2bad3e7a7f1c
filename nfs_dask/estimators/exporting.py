"""Ways out of this package: fitted models as tables, as SQL, as estimators of scikit-learn and as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.estimators.inputs import check_fitted
from nfs_dask.models.model import Model
from nfs_dask.text.features import TextFeatures, terms_of
from nfs_dask.text.settings import TextSettings


class ExportingMixin:
    """What becomes of a `Model` elsewhere. Nothing of it needs this package again, or the training data."""

    model_: Model

    def to_frame(self) -> Any:
        """The selected features as a pandas DataFrame, a row for each, in the order of `get_feature_names_out`.

        Columns are

        - ``feature``, its name, and ``column``, its number in the data;
        - ``gain`` as in ``scores_``, and ``rank``, 1 for the largest; of equal gains the lower column is first;
        - ``weight_<label>`` for each class: how much the feature speaks for it, as in `top_features`;
        - ``log_probability_<label>`` of naive Bayes, ``center_<label>``, ``common_center`` and ``variance`` of centers;
        - ``count_<label>``, of `SparseBernoulliNB` ``documents_<label>``: how often it was there in the fit.

        Model files hold neither gains nor counts, nor are there any of too many features: then those columns are left
        out, and so are gains of `HybridNB`, which has none, and counts of centers.
        """
        from nfs_dask.export.feature_table import data_frame, feature_columns

        check_fitted(self)
        return data_frame(feature_columns(self.model_, self._selected_names(), gains_of(self), self._counted_support()))

    def to_sql(
        self,
        dialect: str = "duckdb",
        table: str | Sequence[str] = "terms",
        *,
        texts: str | Sequence[str] | None = None,
        document: str = "document",
        term: str = "term",
        n: str = "n",
        text: str = "text",
        vectorizer: Any = None,
    ) -> str:
        """One SQL statement that says the class of each document, as ``document`` and ``class``.

        It reads a table of counted words: rows of a document, a term, and how often it is there; or, with ``texts``, a
        table of documents and their texts, whose words it counts itself.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "clickhouse", "sqlite"}
        table
            The table of counted words: its name, "schema.name", or a sequence of both where they have dots. Names are
            quoted, so that they mean themselves: PostgreSQL knows unquoted ones in lower case.
        texts
            The table of texts instead, a row for each document.
        document, term, n
            Columns of ``table``; ``document`` also of ``texts``.
        text
            The column of ``texts``.
        vectorizer : TextVectorizer, optional
            That made the columns, for ``texts``; of a model that was fitted to ingested texts it is known.

        Notes
        -----
        Terms are the names of the features as `get_feature_names_out` has them: ``x3`` for column 3 of data without
        names, ``subject:money`` for a word of a region. ``n`` is the value that the fit had there, such as a count or a
        tf-idf weight; several rows of a document and term are added up, and other terms count for nothing. With
        `SparseBernoulliNB` a term is there whose value is above ``binarize``, or 0.

        A document that has none of the selected terms is classified like any other. One that has no row at all is
        unknown to the table: give it a row whose term is NULL and n is 0. In ``texts`` an empty or missing text is one
        without words.

        Classes are those of `predict`: of equal scores the first of ``classes_``, and what a zero probability rules out
        is ruled out. Numbers are written with all digits; sums are made in the order that a database finds rows in, so
        that scores which agree but for rounding may go either way.

        Only word n-grams by the default token pattern, or one like it, are counted in SQL. Characters are words or not
        as of the Unicode of the database, which may be newer or older than that of Python. PostgreSQL needs ICU, which
        nearly all have; SQLite cannot split texts. ClickHouse parses 256 KiB of a statement unless
        ``max_query_size`` is raised.

        ``covariance="full"`` and `ErrorRateSelector` depend on columns that were not selected, and features without
        variance are compared before others: these are refused.

        Examples
        --------
        >>> from nfs_dask import SparseMultinomialNB
        >>> model = SparseMultinomialNB(k=2).fit([[2, 0, 1], [3, 0, 0], [0, 2, 1], [0, 2, 0]], ["a", "a", "b", "b"])
        >>> print(model.to_sql(table="words.counted")[:24])
        WITH nfs_dask_weights AS
        """
        from nfs_dask.export.sql import dialect_named, statement, tables_of_words

        check_fitted(self)
        said, names = dialect_named(dialect), self._terms_by_name()
        if texts is None:
            if vectorizer is not None:
                raise InputError(
                    "vectorizer= says how texts are split, and there are none; give texts=, or leave it out"
                )
            columns = ", ".join(
                f"{said.identifier(column)} AS {name}"
                for column, name in ((document, "document"), (term, "term"), (n, "n"))
            )
            return statement(self.model_, names, said, f"(SELECT {columns} FROM {said.table(table)})")
        place = (said.table(texts), said.identifier(document), said.identifier(text))
        words = tables_of_words(self._text_settings(vectorizer), names, said, *place)
        return statement(self.model_, names, said, f"nfs_dask_{words[-1][0]}", words)

    def to_sklearn(self, *, texts: bool | None = None, vectorizer: Any = None) -> Any:
        """The same classifier as a fitted `sklearn.pipeline.Pipeline`, of scikit-learn's own classes alone.

        It predicts the same classes, probabilities and decisions, and is pickled and loaded where this package is not
        installed: like any pickle by the same release of scikit-learn.

        Parameters
        ----------
        texts : bool, optional
            Whether it takes texts rather than rows. None: if the model was fitted to ingested texts, or ``vectorizer``
            is given.
        vectorizer : TextVectorizer, optional
            The fitted one that made the columns.

        Returns
        -------
        Pipeline
            A `SelectFromModel` of the selected columns, which selects the same when it is fitted again, of a numpy
            array, CSR or CSC matrix or DataFrame of all columns; or for texts a `CountVectorizer` of the selected
            terms. Then a classifier.

        Notes
        -----
        Classifiers are

        - `MultinomialNB` and `BernoulliNB` of naive Bayes. The probabilities in ``feature_log_prob_`` are those of all
          features, so that those of the selected do not add up to 1;
        - `LogisticRegression` of `HybridNB`, after the shares of words in each region where it normalises; and of
          ``metric="mahalanobis"`` with variances within classes, where decisions are log odds: half of those here;
        - `LinearSVC`, a linear rule without probabilities, of other means;
        - `NearestCentroid` of ``metric="manhattan"``, which has no decisions.

        Refused are features of probability 0 (``alpha=0``) and of no variance; and texts that scikit-learn would read
        otherwise or not at all: with several regions, hashed columns, a tokenizer, or tf-idf with a norm.
        """
        from nfs_dask.export.scikit_pipeline import pipeline_of, words_of_texts

        check_fitted(self)
        model = self.model_
        if not self._reads_texts(texts, vectorizer):
            return pipeline_of(model, getattr(self, "feature_names_in_", None))
        settings, terms = self._text_settings(vectorizer), self._terms_by_name()
        return pipeline_of(model, front=words_of_texts(settings, terms, self._idf(settings, vectorizer)))

    def to_onnx(self, dtype: str = "float32", *, texts: bool | None = None, vectorizer: Any = None) -> Any:
        """The same classifier as an `onnx.ModelProto`, for ONNX Runtime and others.

        Its input is ``text``, (n,) strings, of a model that was fitted to texts; of several regions ``text_subject``
        and the like. Otherwise it is ``features``, (n, k): the selected columns in the order of
        `get_feature_names_out`, as `transform` gives them. The names are kept in the metadata.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            Of ``features``. Counts up to 16 millions are exact in float32; other values may be rounded, and then are
            not quite those of the model. All within is reckoned in float64.
        texts : bool, optional
            Whether it takes texts rather than rows. None: if the model was fitted to ingested texts, or ``vectorizer``
            is given.
        vectorizer : TextVectorizer, optional
            The fitted one that made the columns.

        Returns
        -------
        ModelProto
            With the outputs ``label`` (n,); ``scores`` (n, C), of which the first largest is the label; and of models
            that have them ``probabilities`` (n, C), in the order of ``classes_``.

        Notes
        -----
        Needs ``onnx``: ``pip install 'nfs-dask[onnx]'``. Values are not checked: NaN and values below 0 are the
        business of who gives them. With ``metric="manhattan"`` n x k x C numbers are held at a time.

        ``covariance="full"`` and `ErrorRateSelector` depend on columns that were not selected, and features without
        variance are compared before others: these are refused.

        Texts are read by ONNX Runtime, 1.17 or newer, as one of its operators is no part of ONNX. Words are those of
        the fit to the letter; refused are a tokenizer, patterns unlike the default one, n-grams of characters, stripped
        accents, stems, hashed columns, tf-idf with a norm, and in lower case words with a Greek sigma.
        """
        from nfs_dask.export.onnx_graph import onnx_model

        check_fitted(self)
        model, names = self.model_, self._selected_names()
        if not self._reads_texts(texts, vectorizer):
            return onnx_model(model, names, dtype)
        if model.text is not None and vectorizer is None:
            known = model.text
        else:
            settings = self._text_settings(vectorizer)
            known = TextFeatures(settings, model.n_features, 0, None, self._idf(settings, vectorizer))
        terms = terms_of(names, model.support, known.n_terms, known.regions) if known.settings.hashed is None else names
        return onnx_model(model, names, dtype, replace(known, terms=tuple(terms)))

    def _reads_texts(self, texts: bool | None, vectorizer: Any) -> bool:
        """Whether texts are asked for, rather than rows."""
        if texts is None:
            return vectorizer is not None or self.model_.text is not None
        if vectorizer is not None and not texts:
            raise InputError("vectorizer= is for texts, and texts=False asks for rows; leave one of them out")
        return texts

    def _idf(self, settings: TextSettings, vectorizer: Any) -> Array | None:
        """Weights of the selected terms, with tf-idf."""
        text = self.model_.text
        if not settings.tfidf:
            return None
        return vectorizer.idf_[self.model_.support] if vectorizer is not None or text is None else text.idf

    def _selected_names(self) -> list[str]:
        """Names of the selected features; from the data where they are too many for a model."""
        known = getattr(self, "_names", None)
        if self.model_.names is None and known is not None:
            found = known.names(self.model_.support)
            if found is not None:
                return list(map(str, found))
        return list(map(str, self.model_.feature_names))

    def _terms_by_name(self) -> list[str]:
        """The terms, by which texts and tables know the features."""
        if self.model_.text is not None:
            refuse_hashes(self.model_.text.settings)
        return self._selected_names()

    def _counted_support(self) -> tuple[str, Array] | None:
        """What was counted of the selected features, and what it is called; None where it is not at hand."""
        try:
            counted = getattr(self, "feature_count_", None)
        except InputError:
            return None
        if counted is None:
            return None
        return "documents" if self.model_.method == "bernoulli" else "count", counted[:, self.model_.support]

    def _text_settings(self, vectorizer: Any) -> TextSettings:
        """How texts become terms: as those of the fit, or as a vectorizer says."""
        text = self.model_.text
        if vectorizer is not None:
            settings = settings_of(vectorizer)
            refuse_hashes(settings)
            return settings
        if text is None:
            raise InputError(
                "the model was fitted to a matrix, and does not know how texts become one; give vectorizer=, the "
                "TextVectorizer before it, or a table of counted words"
            )
        if text.n_regions > 1:
            raise InputError(
                f"documents have the texts {', '.join(text.regions)}, and one is read here; give a table of counted "
                f"words, with terms such as {self.model_.feature_names[0]!r}"
            )
        return text.settings


def refuse_hashes(settings: TextSettings) -> None:
    """Refuse columns whose terms are not known."""
    if settings.hashed is not None:
        raise InputError(
            "the columns are hashes of terms, by which nothing else knows them; fit to texts that were counted without "
            "hashed="
        )


def settings_of(vectorizer: Any) -> TextSettings:
    """How a TextVectorizer makes terms."""
    from nfs_dask.estimators.vectorizer import TextVectorizer

    if not isinstance(vectorizer, TextVectorizer):
        raise InputError(f"vectorizer={vectorizer!r}; give the TextVectorizer that made the columns of the fit")
    return vectorizer.settings()


def gains_of(model: Any) -> Array | None:
    """Gains of the selected features; None where there are none at hand."""
    try:
        scores = getattr(model, "scores_", None)
    except InputError:
        return None
    return None if scores is None else np.asarray(scores)[model.model_.support]
