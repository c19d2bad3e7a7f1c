"""What scikit-learn's tests ask of their estimators and ours do otherwise on purpose: by module, test and reason.

A test of several cases may be listed as a whole, or case by case. One that passes all the same has no place here.
"""

from __future__ import annotations

OTHER_WORDS = "refused as well, in other words"
ONE_ALPHA = "alpha is one number of zero or more, which is taken as it is"
PRIVATE = "looks at a private method of theirs"
OTHER_CENTERS = "k chooses features instead of a threshold, and classes are as likely as each other"
IN_STEPS = "texts are read in compiled code, which has no functions to hand out for its steps"
IN_MEMORY = "texts come as strings; files and bytes are read by nfs_dask.ingest"
OTHER_TYPES = "counts are int64 and weights float64"
NO_IDF_SWITCH = "tf-idf is tf-idf; weights without idf are counts, which can be normalised"
SPARSE = "coef_ is sparse from the start"
OWN_NAMES = "looks for the name of their class"

NAIVE_BAYES = {
    "test_alpha": ONE_ALPHA,
    "test_alpha_vector": ONE_ALPHA,
    "test_check_alpha": PRIVATE,
}
NEAREST_CENTROID = {
    "test_classification_toy": "scores are squared distances, which are not divided by what they theirs divide by",
    "test_iris_shrinkage": OTHER_CENTERS,
    "test_shrinkage_correct": OTHER_CENTERS,
    "test_shrinkage_threshold_decoded_y": OTHER_CENTERS,
    "test_predict_translated_data": OTHER_CENTERS,
    "test_features_zero_var": OTHER_CENTERS,
    "test_negative_priors_error": OTHER_CENTERS,
    "test_warn_non_normalized_priors": OTHER_CENTERS,
    "test_manhattan_metric": "centers are called centers_",
    "test_method_not_available_with_manhattan": "absolute distances have a decision_function too",
    "test_error_zero_variances": "features that are constant say nothing, and are no error",
}
