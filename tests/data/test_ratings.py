"""Ratings: read, checked, and graded."""

from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rankloop import data

NAN = np.nan


def ratings(rows: Any, **changed: Any) -> data.Ratings:
    values = np.array(rows, dtype=float)
    fields: dict[str, Any] = {
        "values": values,
        "user_ids": np.arange(values.shape[0]),
        "item_ids": np.arange(values.shape[1]),
        "scale": (-10.0, 10.0),
        "name": "small",
    }
    return data.Ratings(**(fields | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": np.zeros(2)}, "values must be a non-empty users x items matrix, got shape"),
        ({"values": np.zeros((0, 2))}, "values must be a non-empty users x items matrix, got shape"),
        ({"values": np.array([[0, 11.0]])}, "values must lie on the scale -10 to 10, got 11"),
        ({"values": np.array([[0, -np.inf]])}, "values must lie on the scale -10 to 10, got -inf"),
        ({"user_ids": np.array([1, 2])}, "user_ids must be 1 different integers"),
        ({"item_ids": np.array([3, 3])}, "item_ids must be 2 different integers"),
        ({"item_names": ("one",)}, "item_names must be 2 names, got 1"),
        ({"scale": (1.0, 1.0)}, "scale must be two finite numbers in increasing order"),
        ({"scale": (0.0, np.inf)}, "scale must be two finite numbers in increasing order"),
        ({"scale": (NAN, 1.0)}, "scale must be two finite numbers in increasing order"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ratings([[0.0, 1.0]], **changed)


def test_ratings_are_frozen_and_leave_the_callers_array_alone() -> None:
    values = np.zeros((1, 2))
    frozen = ratings(values, values=values)
    with pytest.raises(ValueError, match="read-only"):
        frozen.values[0, 0] = 1.0
    values[0, 0] = 5.0
    assert frozen.values[0, 0] == 0.0


def test_most_rated_prefers_the_smaller_id_and_keeps_the_order() -> None:
    whole = ratings(
        [[1, 2, NAN, 4], [5, NAN, 7, 8], [NAN, 2, 3, 4]],
        item_ids=np.array([40, 30, 20, 10]),
        item_names=("d", "c", "b", "a"),
        user_ids=np.array([7, 8, 9]),
    )
    chosen = whole.most_rated(
        2
    )  # item 10 has three ratings; of the others with two each, 20 has the smallest id
    assert chosen.item_ids.tolist() == [20, 10]
    assert chosen.item_names == ("b", "a")
    assert chosen.user_ids.tolist() == [8, 9]
    assert chosen.values.tolist() == [[7, 8], [3, 4]]
    everyone = whole.most_rated(2, complete=False)
    assert everyone.user_ids.tolist() == [7, 8, 9]
    assert np.isnan(everyone.values).sum() == 1


def test_most_rated_refuses_what_cannot_be() -> None:
    small = ratings([[1, NAN], [NAN, 1]])
    for n_items in (0, 3):
        with pytest.raises(ValueError, match=f"n_items must be a whole number from 1 to 2, got {n_items}"):
            small.most_rated(n_items)
    with pytest.raises(ValueError, match="no user rated all of the 2 most-rated items"):
        small.most_rated(2)


def test_binary_relevance_is_strictly_above_the_cut() -> None:
    row = ratings([[-10, -0.01, 0, 0.01, 3, 10]])
    assert row.relevance().tolist() == [[0, 0, 0, 1, 1, 1]]
    assert row.relevance().dtype == np.int64
    assert row.relevance(threshold=3.0).tolist() == [[0, 0, 0, 0, 0, 1]]
    assert row.relevance(threshold=-10.0).tolist() == [[0, 1, 1, 1, 1, 1]]


def test_grades_cut_the_scale_into_equal_parts() -> None:
    row = ratings([[-10, -6, -5.9, -2, 1.9, 2.1, 6, 6.1, 10]])
    assert row.relevance(grades=4).tolist() == [[0, 0, 1, 1, 2, 3, 3, 4, 4]]
    stars = ratings([[0.5, 2, 2.5, 3.5, 4, 5]], scale=(0.5, 5.0))
    assert stars.relevance(grades=2).tolist() == [[0, 0, 1, 1, 2, 2]]


def test_missing_ratings_are_dropped_zero_or_filled() -> None:
    gaps = ratings([[5, NAN], [-5, 8], [9, -2]])
    assert gaps.relevance().tolist() == [[0, 1], [1, 0]]
    assert gaps.relevance(missing="zero").tolist() == [[1, 0], [0, 1], [1, 0]]
    assert gaps.relevance(missing="item-mean").tolist() == [
        [1, 1],
        [0, 1],
        [1, 0],
    ]  # (8 - 2) / 2 = 3 is liked


def test_missing_ratings_that_cannot_be_handled() -> None:
    gaps = ratings([[5, NAN], [-5, NAN]], item_ids=np.array([3, 4]))
    with pytest.raises(ValueError, match="missing='drop' leaves no user"):
        gaps.relevance()
    with pytest.raises(ValueError, match="no mean for item 4: no user rated it"):
        gaps.relevance(missing="item-mean")
    with pytest.raises(ValueError, match="missing must be one of drop, zero, item-mean, got 'ignore'"):
        gaps.relevance(missing="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grades": 0}, "grades must be a whole number of at least 1, got 0"),
        ({"grades": 2, "threshold": 1.0}, "threshold cuts into two grades, got threshold=1.0 with grades=2"),
        ({"threshold": 10.0}, "threshold must lie on the scale, -10 <= threshold < 10, got 10.0"),
        ({"threshold": NAN}, "threshold must lie on the scale"),
    ],
)
def test_a_wrong_cut_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ratings([[1.0]]).relevance(**arguments)


@given(seed=st.integers(0, 2**32), grades=st.integers(1, 6), missing=st.sampled_from(["zero", "item-mean"]))
def test_grades_rise_with_ratings_and_shuffling_only_reorders_users(
    seed: int, grades: int, missing: Any
) -> None:
    people = data.synthetic_ratings(n_users=30, n_items=4, seed=seed)
    relevance = people.relevance(grades=grades, missing=missing)
    assert relevance.shape == people.values.shape
    assert relevance.min() >= 0
    assert relevance.max() <= grades
    rated = ~np.isnan(people.values)
    in_order = np.argsort(people.values[rated])
    assert (np.diff(relevance[rated][in_order]) >= 0).all()
    shuffled = people.relevance(grades=grades, missing=missing, shuffle_seed=seed)
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, relevance))
    again = people.relevance(grades=grades, missing=missing, shuffle_seed=seed)
    np.testing.assert_array_equal(shuffled, again)
    assert not people.values.flags.writeable


def test_shuffling_moves_users() -> None:
    people = ratings(np.eye(50))
    assert not np.array_equal(people.relevance(shuffle_seed=0), people.relevance())


RATINGS = "userId,movieId,rating,timestamp\n7,30,4.5,1\n2,30,0.5,2\n7,4,5.0,3\n"
MOVIES = (
    'movieId,title,genres\n4,"Four, the Film (1999)",Drama\n5,Unseen (2000),Drama\n30,Thirty (2001),Comedy\n'
)


def write(path: Path, text: str) -> Path:
    raw = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@pytest.mark.parametrize("name", ["jokes.csv", "jokes.csv.gz"])
@pytest.mark.parametrize("named", ["jester", None])
def test_jester(tmp_path: Path, name: str, named: str | None) -> None:
    path = write(tmp_path / name, "1.5,,99\n-10, ,10\n,,\n")
    ratings = data.read_ratings(path, format=named)
    nan = np.nan
    np.testing.assert_array_equal(ratings.values, [[1.5, nan, nan], [-10, nan, 10], [nan, nan, nan]])
    assert ratings.user_ids.tolist() == ratings.item_ids.tolist() == [1, 2, 3]
    assert ratings.scale == (-10.0, 10.0)
    assert ratings.name == "jokes"
    assert ratings.item_names is None


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("named", ["movielens", None])
@pytest.mark.parametrize("whole_folder", [True, False])
def test_movielens(tmp_path: Path, end: str, named: str | None, whole_folder: bool) -> None:
    path = write(tmp_path / "films" / f"ratings.csv{end}", RATINGS)
    write(tmp_path / "films" / f"movies.csv{end}", MOVIES)
    ratings = data.read_ratings(str(path.parent if whole_folder else path), format=named)
    np.testing.assert_array_equal(ratings.values, [[np.nan, 0.5], [5.0, 4.5]])
    assert ratings.user_ids.tolist() == [2, 7]
    assert ratings.item_ids.tolist() == [4, 30]
    assert ratings.item_names == ("Four, the Film (1999)", "Thirty (2001)")
    assert ratings.scale == (0.5, 5.0)
    assert ratings.name == "films"


def test_movielens_without_titles_or_timestamps(tmp_path: Path) -> None:
    ratings = data.read_ratings(write(tmp_path / "ratings.csv", "userId,movieId,rating\n1,2,3\n"))
    assert ratings.item_names is None
    assert ratings.values.tolist() == [[3.0]]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "ratings.csv", "\ufeff" + RATINGS.replace("\n", "\r\n"))
    assert data.read_ratings(path).values.shape == (2, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no ratings in the file"),
        ("1,2\n1,2,3\n", "line 2: expected 2 ratings, found 3"),
        ("1,2\n\n1,2\n", "line 2: expected 2 ratings, found 0"),
        ("\n1,2\n", "line 1: expected 1 ratings, found 0"),
        ("1,2\n1,good\n", "line 2: column 2 is not a number: 'good'"),
        ("1,10.5\n", "line 1: column 2 is not a rating from -10 to 10: '10.5'"),
        ("-98,1\n", "line 1: column 1 is not a rating from -10 to 10: '-98'"),
        ("1,nan\n", "line 1: column 2 is not a rating from -10 to 10: 'nan'"),
        ("1,-inf\n", "line 1: column 2 is not a rating from -10 to 10: '-inf'"),
        ('1,2\n1,"2\n', "line 2: unexpected end of data"),
    ],
)
def test_a_mistake_in_jester_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "jokes.csv", text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        data.read_ratings(path)
    assert str(caught.value) in (f"{path}, {message}", f"{path}: {message}")


HEAD = "userId,movieId,rating,timestamp\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected a header line userId,movieId,rating,..., found ''"),
        ("1,2,3,4\n", "line 1: expected a header line userId,movieId,rating,..., found '1,2,3,4'"),
        (HEAD, "no ratings in the file"),
        (HEAD + "1,2,3\n", "line 2: expected 4 cells, found 3"),
        (HEAD + "1,2,3,4\n\n", "line 3: expected 4 cells, found 0"),
        (HEAD + "1,2,3,4\nme,2,3,4\n", "line 3: id is not a whole number: 'me'"),
        (HEAD + "1,2.5,3,4\n", "line 2: id is not a whole number: '2.5'"),
        (HEAD + f"1,{10**18},3,4\n", f"line 2: id is not a whole number: '{10**18}'"),
        (HEAD + "1,2,,4\n", "line 2: rating is not a number: ''"),
        (HEAD + "1,2,0,4\n", "line 2: rating is not from 0.5 to 5: '0'"),
        (HEAD + "1,2,6,4\n", "line 2: rating is not from 0.5 to 5: '6'"),
        (HEAD + "1,2,nan,4\n", "line 2: rating is not from 0.5 to 5: 'nan'"),
        (HEAD + "1,2,inf,4\n", "line 2: rating is not from 0.5 to 5: 'inf'"),
        (HEAD + "1,2,3,4\n1,3,3,4\n1,2,5,9\n", "line 4: user 1 rates film 2 a second time"),
    ],
)
def test_a_mistake_in_movielens_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "ratings.csv.gz", text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        data.read_ratings(path, format="movielens")
    assert str(caught.value) in (f"{path}, {message}", f"{path}: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("movieId,title\n4,Four\n", "no title for film 30, which was rated"),
        ("movieId,title\n4,Four\n4,Five\n", "line 3: film 4 is listed a second time"),
        ("movieId,genres\n4,Drama\n", "line 1: expected a header line movieId,title,..."),
    ],
)
def test_a_mistake_among_the_titles_is_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "ratings.csv", RATINGS)
    movies = write(tmp_path / "movies.csv", text)
    with pytest.raises(ValueError, match=r"movies\.csv") as caught:
        data.read_ratings(tmp_path)
    assert str(caught.value).startswith((f"{movies}, {message}", f"{movies}: {message}"))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.csv").write_bytes(b"1,2\n\xff\xfe,3\n")
    with pytest.raises(ValueError, match=r"bytes\.csv, line 2, column 1: not UTF-8 text"):
        data.read_ratings(tmp_path / "bytes.csv")
    whole = gzip.compress(b"1,2\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(ValueError, match=r"cut\.csv\.gz: broken gzip file"):
        data.read_ratings(tmp_path / "cut.csv.gz")


def test_a_gzip_file_under_a_plain_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "jokes.csv"
    path.write_bytes(gzip.compress(b"1,2\n"))
    assert data.read_ratings(path).values.tolist() == [[1.0, 2.0]]


def test_unknown_format_and_missing_files(tmp_path: Path) -> None:
    path = write(tmp_path / "jokes.csv", "1\n")
    with pytest.raises(ValueError, match="format must be one of 'jester', 'movielens', got 'netflix'"):
        data.read_ratings(path, format="netflix")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        data.read_ratings(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"no ratings\.csv or ratings\.csv\.gz in the folder"):
        data.read_ratings(tmp_path)


def matrices(low: float, high: float) -> st.SearchStrategy[NDArray[np.float64]]:
    cells = st.one_of(st.just(np.nan), st.floats(low, high))
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
    return hnp.arrays(np.float64, shapes, elements=cells)


@given(values=matrices(-10, 10), zipped=st.booleans(), mark=st.sampled_from(["", "99", "99.00"]))
def test_a_jester_matrix_comes_back(
    tmp_path_factory: pytest.TempPathFactory, values: NDArray[np.float64], zipped: bool, mark: str
) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([[mark if np.isnan(x) else repr(float(x)) for x in row] for row in values])
    path = tmp_path_factory.mktemp("jester") / ("m.csv.gz" if zipped else "m.csv")
    np.testing.assert_array_equal(data.read_ratings(write(path, text.getvalue())).values, values)


@given(values=matrices(0.5, 5), rng=st.randoms(use_true_random=False))
def test_a_movielens_matrix_comes_back_from_lines_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, values: NDArray[np.float64], rng: random.Random
) -> None:
    rated = ~np.isnan(values)
    assume(rated.any())
    lines = [f"{3 * user},{5 * item},{float(values[user, item])!r},0\n" for user, item in np.argwhere(rated)]
    rng.shuffle(lines)
    path = write(tmp_path_factory.mktemp("movielens") / "ratings.csv", HEAD + "".join(lines))
    ratings = data.read_ratings(path)
    users, items = np.flatnonzero(rated.any(axis=1)), np.flatnonzero(rated.any(axis=0))
    assert ratings.user_ids.tolist() == (3 * users).tolist()
    assert ratings.item_ids.tolist() == (5 * items).tolist()
    np.testing.assert_array_equal(ratings.values, values[np.ix_(users, items)])


def real(relative: str) -> data.Ratings:
    try:
        path = data.find(relative)
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    return data.read_ratings(path)


def test_real_jester() -> None:
    ratings = real("ratings/jester_users_0001_2500.csv.gz")
    assert ratings.values.shape == (2500, 100)
    assert np.count_nonzero(~np.isnan(ratings.values)) == 181_673
    assert np.nanmin(ratings.values) == -9.95
    assert np.nanmax(ratings.values) == 9.90
    ten = ratings.most_rated(10)
    assert ten.item_ids.tolist() == [5, 7, 8, 13, 15, 16, 17, 18, 19, 20]
    assert ten.n_users == 2499
    liked = ten.relevance()
    assert liked.shape == (2499, 10)
    assert round(float(liked.mean()), 3) == 0.443
    assert ratings.relevance().shape == (747, 100)


def test_real_movielens() -> None:
    ratings = real("ratings/ml-latest-small")
    assert ratings.values.shape == (671, 9066)  # of the 9,125 films listed, 59 were never rated
    assert np.count_nonzero(~np.isnan(ratings.values)) == 100_004
    assert set(ratings.values[~np.isnan(ratings.values)]) == set(np.arange(0.5, 5.5, 0.5))
    assert ratings.item_names is not None
    assert ratings.item_names[0] == "Toy Story (1995)"
    ten = ratings.most_rated(10)
    assert ten.n_users == 22
    assert ratings.most_rated(5).n_users == 88
    assert round(float(ten.relevance().mean()), 2) == 0.94
    assert round(float(ten.relevance(threshold=3.5).mean()), 2) == 0.80
    assert ten.item_names is not None
    assert "Pulp Fiction (1994)" in ten.item_names
