"""What scikit-learn's tests ask of their estimators and ours do otherwise on purpose: by module, test and reason.

A test of several cases is listed by its name, however many of them differ. One that passes has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass

OTHER_WORDS = "refused as well, in other words"
OTHER_WARNINGS = "warned of in other words, or refused"
ONE_ALPHA = "alpha is one number of zero or more, and taken as it is"
PRIVATE = "looks at what is private to theirs"
OWN_NAME = "looks for the name or the parameters of their class"
CENTERS = "k chooses features instead of a threshold, and classes are as likely as each other"
IN_STEPS = "texts are read in compiled code, which has no functions to hand out for its steps"
TEXTS_ONLY = (
    "texts come as strings, split by an analyzer's name or a tokenizer; files and bytes are for nfs_dask.ingest"
)
TYPES = "counts are int64 and weights float64"
IDF = "tf-idf has one formula, and its weights come from a fit"
IMPORTANCES = "there is coef_ and no feature_importances_"


@dataclass(frozen=True)
class Exchange:
    """A module of tests, the classes in it that are replaced, each by a stand-in, and what is different then."""

    module: str
    classes: dict[str, str]
    differences: dict[str, str]  # by the name of a test


EXCHANGES = [
    Exchange(
        "sklearn.tests.test_naive_bayes",
        {"MultinomialNB": "MultinomialNB", "BernoulliNB": "BernoulliNB"},
        {
            "test_alpha": ONE_ALPHA,
            "test_alpha_vector": ONE_ALPHA,
            "test_check_alpha": PRIVATE,
            "test_discretenb_provide_prior": "a fit that was refused leaves the estimator as it was",
        },
    ),
    Exchange(
        "sklearn.neighbors.tests.test_nearest_centroid",
        {"NearestCentroid": "NearestCentroid"},
        {
            "test_classification_toy": "scores are differences of squared distances in units of the features",
            "test_iris_shrinkage": CENTERS,
            "test_shrinkage_correct": CENTERS,
            "test_shrinkage_threshold_decoded_y": CENTERS,
            "test_predict_translated_data": CENTERS,
            "test_features_zero_var": CENTERS,
            "test_negative_priors_error": CENTERS,
            "test_warn_non_normalized_priors": CENTERS,
            "test_manhattan_metric": "centers are called centers_",
            "test_method_not_available_with_manhattan": "absolute distances have a decision_function too",
            "test_error_zero_variances": "features that are constant say nothing, and are no error",
        },
    ),
    Exchange(
        "sklearn.feature_extraction.tests.test_text",
        {"CountVectorizer": "CountVectorizer", "TfidfVectorizer": "TfidfVectorizer"},
        {
            "test_word_analyzer_unigrams": IN_STEPS,
            "test_word_analyzer_unigrams_and_bigrams": IN_STEPS,
            "test_unicode_decode_error": IN_STEPS,
            "test_char_ngram_analyzer": IN_STEPS,
            "test_char_wb_ngram_analyzer": IN_STEPS,
            "test_word_ngram_analyzer": IN_STEPS,
            "test_vectorizer": IN_STEPS,
            "test_vectorizer_inverse_transform": IN_STEPS,
            "test_pickling_built_processors": IN_STEPS,
            "test_countvectorizer_stop_words": IN_STEPS,
            "test_stop_word_validation_custom_preprocessor": IN_STEPS,
            "test_countvectorizer_custom_vocabulary_repeated_indices": OTHER_WORDS,
            "test_countvectorizer_custom_vocabulary_gap_index": OTHER_WORDS,
            "test_countvectorizer_empty_vocabulary": OTHER_WORDS,
            "test_countvectorizer_custom_token_pattern_with_several_group": OTHER_WORDS,
            "test_vectorizer_string_object_as_input": OTHER_WORDS,
            "test_vectorizers_invalid_ngram_range": OTHER_WORDS,
            "test_countvectorizer_uppercase_in_vocab": OTHER_WARNINGS,
            "test_vectorizer_stop_words_inconsistent": OTHER_WARNINGS,
            "test_unused_parameters_warn": OTHER_WARNINGS,
            "test_pickling_vectorizer": TEXTS_ONLY,
            "test_callable_analyzer_error": TEXTS_ONLY,
            "test_callable_analyzer_change_behavior": TEXTS_ONLY,
            "test_callable_analyzer_reraise_error": TEXTS_ONLY,
            "test_count_binary_occurrences": TYPES,
            "test_tfidf_vectorizer_type": TYPES,
            "test_tfidf_vectorizer_preserve_dtype_idf": TYPES,
            "test_tfidf_vectorizer_setters": IDF,
            "test_tfidf_vectorizer_setter": IDF,
            "test_tfidfvectorizer_invalid_idf_attr": IDF,
            "test_tfidfvectorizer_binary": IDF,
            "test_tfidfvectorizer_export_idf": PRIVATE,
            "test_countvectorizer_sort_features_64bit_sparse_indices": PRIVATE,
        },
    ),
    Exchange(
        "sklearn.feature_selection.tests.test_rfe",
        {"SVC": "Classifier", "LogisticRegression": "Classifier"},
        {
            "test_rfecv": "another classifier is best with another number of features",
            "test_w_pipeline_2d_coef_": OWN_NAME,
            "test_pipeline_with_nans": OWN_NAME,
        },
    ),
    Exchange(
        "sklearn.feature_selection.tests.test_from_model",
        {"LogisticRegression": "Classifier", "RandomForestClassifier": "Classifier"},
        {
            "test_feature_importances": IMPORTANCES,
            "test_threshold_string": IMPORTANCES,
            "test_sample_weight": "classes weigh the same, so that weights of a whole class change nothing",
            "test_partial_fit": "documents can be added, which is not so of their forests",
            "test_importance_getter": OWN_NAME,
        },
    ),
    Exchange(
        "sklearn.ensemble.tests.test_bagging",
        {"DecisionTreeClassifier": "Classifier", "KNeighborsClassifier": "Classifier", "SVC": "Classifier"},
        {
            "test_error": "there is a decision_function, which trees have not",
            "test_estimator": OWN_NAME,
        },
    ),
    Exchange(
        "sklearn.tests.test_pipeline",
        {
            "LogisticRegression": "Classifier",
            "SVC": "Classifier",
            "SelectKBest": "SelectKBest",
            "CountVectorizer": "CountVectorizer",
        },
        {
            "test_pipeline_invalid_parameters": OWN_NAME,
            "test_score_samples_on_pipeline_without_score_samples": OWN_NAME,
        },
    ),
]
