"""Datasets: checked, selected, split and scaled; and the folder of real data."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop import data


def dataset(**changes: Any) -> data.Dataset:
    arguments = {
        "features": np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0], [-4.0, 0.5]], np.float32),
        "relevance": np.array([0.0, 2.0, 0.5, 1.0]),
        "offsets": np.array([0, 3, 4]),
        "query_ids": ("a", "b"),
        "name": "small",
        "max_grade": 2,
        "comments": ("docid = A inc = 1", "", "docid=C", "nothing"),
    }
    return data.Dataset(**{**arguments, **changes})


@st.composite
def datasets(draw: st.DrawFn) -> data.Dataset:
    lengths = draw(st.lists(st.integers(1, 5), min_size=2, max_size=12))
    n_features = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1e-300, 1e-3, 1.0, 1e30, 1e300]))
    features = rng.integers(-3, 4, size=(sum(lengths), n_features)) * scale * rng.random(n_features)
    return data.Dataset(
        features=features if scale > 1e30 or draw(st.booleans()) else features.astype(np.float32),
        relevance=rng.integers(0, 5, size=sum(lengths)),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        query_ids=tuple(f"q{i}" for i in range(len(lengths))),
        name="drawn",
        max_grade=4,
        comments=tuple(f"document {i}" for i in range(sum(lengths))),
    )


def test_what_it_says() -> None:
    small = dataset()
    assert repr(small) == "Dataset('small': 2 queries, 4 documents, 2 features, grades up to 2)"
    assert (small.n_queries, small.n_documents, small.n_features) == (2, 4, 2)
    assert small.lengths.tolist() == [3, 1]
    assert small.doc_ids == ("A", "", "C", "")
    assert dataset(comments=("x",) * 4).doc_ids is None
    assert dataset(comments=None).doc_ids is None


def test_features_are_kept_once_and_cannot_be_written() -> None:
    features = np.ones((4, 2), np.float32)
    small = dataset(features=features)
    assert np.shares_memory(small.features, features)
    assert features.flags.writeable
    rows, relevance = small.query(0)
    assert np.shares_memory(rows, features)
    assert np.shares_memory(relevance, small.relevance)
    for array in (small.features, small.relevance, small.offsets, rows, relevance):
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        small.name = "other"  # type: ignore[misc]


def test_other_types_become_float64() -> None:
    small = dataset(features=[[1, 2], [3, 4], [5, 6], [7, 8]], relevance=[0, 1, 2, 0], offsets=[0, 1, 4])
    assert small.features.dtype == small.relevance.dtype == np.float64
    assert small.offsets.dtype == np.int64
    assert dataset(features=np.asfortranarray(np.ones((4, 2)))).features.flags.c_contiguous


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.zeros(4)}, "features must be a non-empty documents x features matrix"),
        ({"features": np.zeros((4, 0))}, "features must be a non-empty documents x features matrix"),
        ({"features": np.full((4, 2), np.nan)}, "features must be finite"),
        ({"features": np.full((4, 2), -np.inf)}, "features must be finite"),
        ({"relevance": [1, 2]}, "relevance must be 4 grades"),
        ({"relevance": [0, 0, 0, 3]}, "relevance must be from 0 to 2, got 3"),
        ({"relevance": [0, 0, 0, -0.5]}, "relevance must be from 0 to 2, got -0.5"),
        ({"relevance": [0, 0, 0, np.nan]}, "relevance must be from 0 to 2, got nan"),
        ({"max_grade": 0}, "max_grade must be a whole number of at least 1, got 0"),
        ({"offsets": [0, 3]}, "offsets must go from 0 to 4"),
        ({"offsets": [1, 3, 4]}, "offsets must go from 0 to 4"),
        ({"offsets": [0, 0, 4]}, "offsets must rise"),
        ({"query_ids": ("a",)}, "query_ids must be 2 different names"),
        ({"query_ids": ("a", "a")}, "query_ids must be 2 different names"),
        ({"comments": ("x",)}, "comments must be 4, one a document, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataset(**changes)


@given(drawn=datasets(), train=st.floats(0.01, 0.99), seed=st.integers(0, 100))
def test_a_split_is_disjoint_and_covers(drawn: data.Dataset, train: float, seed: int) -> None:
    parts = drawn.split(train=train, seed=seed)
    names = [part.query_ids for part in parts]
    assert all(names)
    assert sorted(names[0] + names[1]) == sorted(drawn.query_ids)
    assert abs(len(names[0]) - train * drawn.n_queries) <= 1
    for part in parts:
        assert part.max_grade == drawn.max_grade
        assert list(part.query_ids) == sorted(part.query_ids, key=drawn.query_ids.index)
        assert part.comments is not None
        for i, name in enumerate(part.query_ids):
            features, relevance = drawn.query(drawn.query_ids.index(name))
            np.testing.assert_array_equal(part.query(i)[0], features)
            np.testing.assert_array_equal(part.query(i)[1], relevance)
            first = drawn.offsets[drawn.query_ids.index(name)]
            assert part.comments[part.offsets[i]] == f"document {first}"
    again = drawn.split(train=train, seed=seed)
    assert [part.query_ids for part in again] == names


def test_select() -> None:
    small = dataset()
    turned = small.select([1, 0])
    assert turned.query_ids == ("b", "a")
    assert turned.relevance.tolist() == [1, 0, 2, 0.5]
    assert turned.comments == ("nothing", "docid = A inc = 1", "", "docid=C")
    assert np.shares_memory(small.select(range(2)).features, small.features)
    assert np.shares_memory(small.select(np.array([1])).features, small.features)
    assert small.select([1]).comments == ("nothing",)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], "queries must be a non-empty list of indices"),
        ([0.5], "queries must be a non-empty list of indices"),
        ([2], "queries must be from 0 to 1, got 2"),
        ([-1], "queries must be from 0 to 1, got -1"),
        ([0, 0], "queries must be different"),
    ],
)
def test_select_refuses(queries: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataset().select(queries)


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="train must be a finite number above 0 and below 1, got 1"):
        dataset().split(train=1.0)
    with pytest.raises(ValueError, match="needs two queries to split"):
        dataset().select([0]).split()
    with pytest.raises(ValueError, match="i must be from 0 to 1, got 2"):
        dataset().query(2)
    with pytest.raises(ValueError, match="by must be 'query', got 'all'"):
        dataset().normalised("all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="norm must be a finite number above 0, got 0"):
        dataset().bounded(norm=0)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        dataset().with_dtype("int8")  # type: ignore[arg-type]


def test_normalised_by_hand() -> None:
    np.testing.assert_array_equal(dataset().normalised("query").features, [[0, 0], [1, 0], [0.5, 0], [0, 0]])


@given(datasets())
def test_normalised_is_the_formula(drawn: data.Dataset) -> None:
    normal = drawn.normalised()
    assert normal.features.dtype == drawn.features.dtype
    for i in range(drawn.n_queries):
        rows = drawn.query(i)[0].astype(np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        expected = np.where(high > low, (rows - low) / span, 0.0)
        np.testing.assert_array_equal(normal.query(i)[0], expected.astype(drawn.features.dtype))
    assert normal.features.min() >= 0
    assert normal.features.max() <= 1


def test_normalised_when_the_range_is_wider_than_a_float() -> None:
    wide = dataset(features=np.array([[-1.7e308, 0], [1.7e308, 0], [0, 0], [5, 1]]))
    np.testing.assert_array_equal(wide.normalised().features[:3, 0], [0, 1, 0.5])


@given(drawn=datasets(), norm=st.sampled_from([1.0, 0.1, 7.0]))
def test_bounded(drawn: data.Dataset, norm: float) -> None:
    bounded = drawn.bounded(norm=norm)
    lengths = np.sqrt((bounded.features.astype(np.float64) ** 2).sum(axis=1))
    if not drawn.features.any():
        assert bounded is drawn
        return
    assert lengths.max() <= norm
    assert lengths.max() == pytest.approx(norm, rel=1e-6)
    # One number for all.
    i, j = np.unravel_index(np.argmax(np.abs(drawn.features)), drawn.features.shape)
    ratio = float(bounded.features[i, j]) / float(drawn.features[i, j])
    np.testing.assert_allclose(
        bounded.features, drawn.features.astype(np.float64) * ratio, rtol=1e-6, atol=1e-40
    )


def test_with_dtype() -> None:
    small = dataset()
    assert small.with_dtype("float32") is small
    double = small.with_dtype("float64")
    assert double.features.dtype == np.float64
    np.testing.assert_array_equal(double.features, small.features)


# By name, because `data.folder` is the function of that name.
folder_module = importlib.import_module("rankloop.data.dataset")


def test_the_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    (tmp_path / "ratings").mkdir()
    assert data.folder() == tmp_path
    assert data.find("ratings") == tmp_path / "ratings"


def test_a_relative_variable_is_seen_from_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKLOOP_DATA", "here")
    assert data.folder() == tmp_path / "here"


@pytest.mark.parametrize("unset", [True, False])
def test_the_default_lies_beside_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unset: bool
) -> None:
    if unset:
        monkeypatch.delenv("RANKLOOP_DATA", raising=False)
    else:
        monkeypatch.setenv("RANKLOOP_DATA", "")
    module = tmp_path / "checkout" / "src" / "rankloop" / "data" / "folder.py"
    module.parent.mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").touch()
    monkeypatch.setattr(folder_module, "__file__", str(module))
    assert data.folder() == tmp_path.resolve() / "shared" / "data"


def test_without_a_checkout_the_default_lies_beside_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RANKLOOP_DATA", raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    installed = tmp_path / "lib" / "site-packages" / "rankloop" / "data" / "folder.py"
    monkeypatch.setattr(folder_module, "__file__", str(installed))
    assert data.folder() == tmp_path / "shared" / "data"


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    with pytest.raises(data.DataMissing) as caught:
        data.find("ratings/nobody.csv")
    assert isinstance(caught.value, FileNotFoundError)
    assert str(caught.value) == (
        f"real data missing: no ratings/nobody.csv in {tmp_path};"
        " set RANKLOOP_DATA to the folder that holds it"
    )


def test_an_absolute_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="relative must be a path inside the data folder"):
        data.find(tmp_path)
