"""Who writes a parameter as scikit-learn has it is told what it is called here."""

from __future__ import annotations

import inspect
import pickle

import pytest
from sklearn.base import clone

import nfs_dask as nfs
from nfs_dask.ingestion.other_names import THEIRS


@pytest.mark.parametrize("name", THEIRS)
def test_parameters_of_scikit_learn_get_a_hint(name, tmp_path):
    for function in (nfs.TextVectorizer, lambda **given: nfs.ingest(["tea"], tmp_path / "s", **given)):
        with pytest.raises(TypeError, match=f"there is no {name}= here; write "):
            function(**{name: 1})
        with pytest.raises(TypeError, match="unexpected keyword argument 'luck'"):
            function(luck=1)
    assert not (tmp_path / "s").exists()


def test_signatures_are_as_they_were():
    assert "ngrams" in inspect.signature(nfs.ingest).parameters
    vectorizer = clone(nfs.TextVectorizer(ngrams=(1, 2)))
    assert vectorizer.get_params()["ngrams"] == (1, 2)
    assert pickle.loads(pickle.dumps(nfs.ingest)) is nfs.ingest
