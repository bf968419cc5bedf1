"""The real files, where they are: what is known of them must come out."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from rankloop import data

# folder, preset, queries, documents, features, highest grade, longest list, queries without a relevant document
SETS = [
    ("mq2008", "mq2008", 784, 15_211, 46, 2, 121, 220),
    ("yahoo_sample", None, 251, 3_773, 300, 4, 27, 3),
    ("mslr", "mslr", 126, 13_426, 136, 4, 337, 3),
    ("clueweb09", None, 61, 26_646, 42, 4, 728, 1),
    ("movielens_ltr", None, 671, 50_166, 33, 4, 1196, 0),
]


def real(name: str) -> Path:
    try:
        return data.find(f"ltr/{name}")
    except data.DataMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("name", "preset", "queries", "documents", "features", "grade", "longest", "hopeless"), SETS
)
def test_sizes(
    name: str,
    preset: str | None,
    queries: int,
    documents: int,
    features: int,
    grade: int,
    longest: int,
    hopeless: int,
) -> None:
    dataset = data.read_letor(real(name), preset=preset, cache=False)
    assert dataset.name == name
    assert (dataset.n_queries, dataset.n_documents, dataset.n_features) == (queries, documents, features)
    assert dataset.max_grade == dataset.relevance.max() == grade
    assert dataset.lengths.max() == longest
    assert np.count_nonzero(np.maximum.reduceat(dataset.relevance, dataset.offsets[:-1]) == 0) == hopeless
    assert dataset.features.dtype == np.float32
    assert dataset.features.min() == 0
    assert dataset.features.max() == 1


def test_documents_are_named() -> None:
    mq2008 = data.read_letor(real("mq2008"), cache=False)
    assert mq2008.query_ids[0] == "10002"
    assert mq2008.doc_ids is not None
    assert mq2008.doc_ids[0] == "GX008-86-4444840"
    assert mq2008.comments is not None
    assert mq2008.comments[0] == "docid = GX008-86-4444840 inc = 1 prob = 0.086622"
    clueweb09 = data.read_letor(real("clueweb09") / "fold1.txt.gz", cache=False)
    assert clueweb09.doc_ids is not None
    assert all(clueweb09.doc_ids)


@pytest.mark.parametrize("file", ["mq2008/S1.txt.gz", "yahoo_sample/test.txt.gz", "mslr/mslr_dev.txt.gz"])
def test_bit_for_bit_as_another_reader_has_them(file: str) -> None:
    path = real(file)
    dataset = data.read_letor(path, normalize=None, dtype="float64", cache=False)
    theirs, grades, queries = load_svmlight_file(str(path), query_id=True)
    np.testing.assert_array_equal(dataset.features, theirs.toarray())
    np.testing.assert_array_equal(dataset.relevance, grades)
    names = np.repeat(np.array([int(name) for name in dataset.query_ids]), dataset.lengths)
    np.testing.assert_array_equal(names, queries)
