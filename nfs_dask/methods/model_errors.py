"""How often the models of a path are wrong, predicted from what they were fitted to.

The log odds of two classes are a sum over the selected features. Its mean and variance under each class follow from the
estimates, and the sum is taken for normal: for multinomial models with documents as long as those of the training data,
for Bernoulli models and centers with features that are independent within a class.

References: docs/mathematics.md 8.4, after ERR (31) to (33).
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.naive_bayes import NaiveBayesModel


def bernoulli_error(model: NaiveBayesModel) -> float:
    """Predicted error of a Bernoulli model: exact means and variances of the log odds under its own probabilities."""
    seen = np.flatnonzero(model.class_count > 0)
    assert model.absent is not None
    present, absent = model.present[seen], model.absent[seen]
    if not (np.isfinite(present).all() and np.isfinite(absent).all()):
        raise InputError(
            "a feature that is impossible in one class rules that class out for certain, so that log odds have no "
            "variance; give alpha above 0"
        )
    chance = np.exp(present)
    means, variances = _nothing(len(seen))
    for i in range(len(seen)):
        for k in range(len(seen)):
            steps = (present[i] - absent[i]) - (present[k] - absent[k])
            start = (absent[i] - absent[k]).sum()
            means[i, k] = start + chance @ steps
            variances[i, k] = (chance * (1 - chance)) @ steps**2
    return overall_error(means, variances, model.class_log_prior[seen])


def centers_error(model: CentersModel, within: Array) -> float:
    """Predicted error of centers that are means, of classes that are as frequent as each other.

    ``within`` (k,) are the variances of the selected features within the classes.
    """
    centers = model.centers[model.seen]
    scale = np.ones(len(within)) if model.variances is None else model.variances
    differs = (centers != centers[:1]).any(axis=0)
    if (differs & (within == 0)).any():
        return 0.0  # a feature alone tells the classes apart
    use = differs & (scale > 0)
    centers, scale, within = centers[:, use], scale[use], within[use]
    means, variances = _nothing(len(centers))
    for i, one in enumerate(centers):
        for k, other in enumerate(centers):
            slopes = (one - other) / scale
            means[i, k] = (2 * centers - one - other) @ slopes
            variances[i, k] = 4 * (within @ slopes**2)
    return overall_error(means, variances, np.zeros(len(centers)))


def overall_error(means: Array, variances: Array, log_prior: Array) -> float:
    """One minus the mean chance of being right, where class i beats k if their log odds and priors say so.

    ``means`` and ``variances`` [i, k, j] are of the log odds of i over k where j is true. Comparisons with several
    other classes are taken for independent. Equal classes go to the first of them.
    """
    from scipy.special import ndtr  # here, as most fits predict no errors

    prior = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    right = np.ones(len(prior))
    for j in range(len(prior)):
        for k in range(len(prior)):
            if k != j:
                ahead = means[j, k, j] + log_prior[j] - log_prior[k]
                sure = variances[j, k, j] == 0
                certain = ahead > 0 or (ahead == 0 and j < k)
                right[j] *= float(certain) if sure else ndtr(ahead / np.sqrt(variances[j, k, j]))
    return float(1 - prior @ right)


def _nothing(n_classes: int) -> tuple[Array, Array]:
    means = np.zeros((n_classes,) * 3)
    return means, means.copy()
