"""Learning-to-rank text: read as another reader has it, mistakes named by line, and kept in a cache."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from rankloop import data
from rankloop.data import letor_documents
from rankloop.data.letor_documents import SIZE
from rankloop.data.text import line_blocks

finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    finite.map(repr),
    st.floats(0, 1).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**20), 10**20).map(str),
    st.builds(lambda m, e: f"{m}e{e}", st.integers(-(10**20), 10**20), st.integers(-30, 30)),
)


def write(folder: Path, text: str | bytes, name: str = "some.txt") -> Path:
    raw = text.encode() if isinstance(text, str) else text
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def read(path: Path | list[Path], **options: Any) -> data.Dataset:
    return data.read_letor(path, **{"normalize": None, "dtype": "float64", **options})


def documents(dataset: data.Dataset) -> list[tuple[str, float, list[float], str]]:
    comments = dataset.comments or ("",) * dataset.n_documents
    names = np.repeat(np.array(dataset.query_ids, dtype=object), dataset.lengths)
    rows = zip(names, dataset.relevance.tolist(), dataset.features.tolist(), comments, strict=True)
    return [(str(name), *rest) for name, *rest in rows]  # type: ignore[misc]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Documents in any order of queries, sparse or dense, with whatever white space."""
    n_features = draw(st.integers(1, 6))
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    blanks = st.sampled_from([" ", "\t", "  "])
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        ids = draw(st.lists(st.integers(1, n_features), unique=True))
        grade = draw(st.sampled_from(["0", "1", "2.0", "+3", "0.25", "4e0", "00"]))
        line = f"{grade}{draw(blanks)}qid:{draw(st.integers(1, 4))}"
        line += "".join(f"{draw(blanks)}{id}:{draw(numbers)}" for id in sorted(ids))  # noqa: A001
        line += draw(st.sampled_from(["", " ", " # docid = D-1", "#", " #x # y "]))
        lines.append(line)
        lines += draw(st.lists(st.sampled_from(["", "# only words", " \t "]), max_size=1))
    lines.append(f"1 qid:9 {n_features}:1")
    return ends.join(lines) + draw(st.sampled_from(["", ends]))


@given(text=texts(), zipped=st.booleans(), size=st.sampled_from([1, 7, 64, SIZE]))
def test_as_another_reader_has_it(
    tmp_path_factory: pytest.TempPathFactory, text: str, zipped: bool, size: int
) -> None:
    path = write(tmp_path_factory.mktemp("letor"), text, "some.txt.gz" if zipped else "some.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor_documents, "SIZE", size)
        dataset = read(path)
    theirs, grades, queries = load_svmlight_file(io.BytesIO(text.encode()), query_id=True, zero_based=False)
    names = list(dict.fromkeys(queries.tolist()))
    assert dataset.query_ids == tuple(str(name) for name in names)
    for i, name in enumerate(names):
        features, relevance = dataset.query(i)
        np.testing.assert_array_equal(features, theirs.toarray()[queries == name])
        np.testing.assert_array_equal(relevance, grades[queries == name])
    assert dataset.max_grade == max(1, np.ceil(grades.max()))


@st.composite
def written(draw: st.DrawFn) -> data.Dataset:
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    shape = sum(lengths), draw(st.integers(1, 4))
    cells = draw(st.lists(finite, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    words = st.text(
        st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters="#"), min_size=1
    )
    names = draw(st.lists(words, min_size=len(lengths), max_size=len(lengths), unique=True))
    return data.Dataset(
        features=np.array(cells).reshape(shape),
        relevance=np.array(draw(st.lists(st.floats(0, 9), min_size=shape[0], max_size=shape[0]))),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        query_ids=tuple(names),
        name="some",
        max_grade=9,
        comments=tuple(draw(st.lists(words, min_size=shape[0], max_size=shape[0]))),
    )


@given(dataset=written(), seed=st.integers(0, 9))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, dataset: data.Dataset, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lines = []
    for name, grade, features, comment in documents(dataset):
        pairs = [f"{j}:{value!r}" for j, value in enumerate(features, start=1) if value]
        rng.shuffle(pairs)
        lines.append(f"{grade!r} qid:{name} {' '.join(pairs)} # {comment}\n")
    path = write(tmp_path_factory.mktemp("letor"), "".join(lines))
    back = read(path, n_features=dataset.n_features)
    assert documents(back) == documents(dataset)
    assert back.offsets.tolist() == dataset.offsets.tolist()
    single = read(path, n_features=dataset.n_features, dtype="float32", normalize="query")
    double = read(path, n_features=dataset.n_features, normalize="query")
    np.testing.assert_array_equal(single.features, double.features.astype(np.float32))
    np.testing.assert_array_equal(double.features, back.normalised("query").features)


def test_queries_are_gathered_where_they_first_appear(tmp_path: Path) -> None:
    text = "1 qid:b 1:1 #p\n0 qid:a 1:2 #q\n2 qid:b 1:3 #r\n0 qid:c 1:4\n1 qid:a 1:5\n"
    for size in (1, SIZE):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(letor_documents, "SIZE", size)
            dataset = read(write(tmp_path, text))
        assert dataset.query_ids == ("b", "a", "c")
        assert dataset.features[:, 0].tolist() == [1, 3, 2, 5, 4]
        assert dataset.relevance.tolist() == [1, 2, 0, 1, 0]
        assert dataset.comments == ("p", "r", "q", "", "")


def test_several_files_are_one(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, "1 qid:1 1:1\n0 qid:2 3:1", "b.txt"),
        write(tmp_path, "0 qid:2 2:2\n1 qid:3\n", "a.txt.gz"),
    ]
    both = read(paths)
    assert both.query_ids == ("1", "2", "3")
    assert both.features.tolist() == [[1, 0, 0], [0, 0, 1], [0, 2, 0], [0, 0, 0]]
    assert both.name == tmp_path.name
    (tmp_path / "README.md").write_text("not data")
    whole = read(tmp_path)
    assert whole.query_ids == ("2", "3", "1")  # by name: a.txt.gz comes first
    assert whole.name == tmp_path.name
    assert read(paths[1]).name == "a"
    assert read(paths[1], name="mine").name == "mine"


def test_gzip_is_told_by_its_bytes_and_may_have_members(tmp_path: Path) -> None:
    first, second = b"1 qid:1 1:1\n0 qi", b"d:1 1:2\n"
    path = tmp_path / "some.txt"
    path.write_bytes(gzip.compress(first) + gzip.compress(b"") + gzip.compress(second) + bytes(512))
    assert read(path).features.tolist() == [[1], [2]]


def test_zstd_is_told_by_its_bytes(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "some.txt"
    with arrow.CompressedOutputStream(str(path), "zstd") as file:
        file.write(b"1 qid:1 1:1\n0 qid:1 1:2")
    assert read(path).features.tolist() == [[1], [2]]


def test_a_line_may_be_longer_than_a_block(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(2000)
    text = "1 qid:1 " + " ".join(f"{j}:{value!r}" for j, value in enumerate(values.tolist(), 1)) + "\n"
    for name in ("some.txt", "some.txt.gz"):
        path = write(tmp_path, text * 3, name)
        assert [len(block) for _, block in line_blocks(path, size=100)] == [len(text)] * 3
        np.testing.assert_array_equal(read(path).features, [values] * 3)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\n\n", b"# words\n", b"\r\n \r\n"])
def test_what_may_stand_in_front(tmp_path: Path, mark: bytes) -> None:
    assert documents(read(write(tmp_path, mark + b"1 qid:7 1:2"))) == [("7", 1.0, [2.0], "")]


def test_numbers_too_long_for_the_kernel(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = [f"{m}.{f:019}e{e}" for m, f, e in rng.integers(0, [10**9, 10**18, 40], size=(3000, 3)).tolist()]
    path = write(tmp_path, "".join(f"1{'0' * 25}e-25 qid:1 1:{value}\n" for value in values))
    dataset = read(path)
    assert dataset.features[:, 0].tolist() == [float(value) for value in values]
    assert dataset.relevance.tolist() == [1.0] * 3000


def test_the_last_line_may_have_the_most_features(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(f"1 qid:1 {j}:{j}\n" for j in range(1, 1001)))
    np.testing.assert_array_equal(read(path).features, np.diag(np.arange(1, 1001)))
    assert read(path, n_features=1500).n_features == 1500


def test_ids_from_0(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 0:5 2:7\n")
    assert read(path, first_feature=0).features.tolist() == [[5, 0, 7]]


def test_comments_that_are_not_utf_8(tmp_path: Path) -> None:
    path = write(
        tmp_path, "1 qid:caf\u00e9 1:1 # na\u00efve\n".encode("latin-1") + "1 qid:é 1:1 # ï\n".encode()
    )
    dataset = read(path)
    assert dataset.query_ids == ("caf\\xe9", "é")
    assert dataset.comments == ("na\\xefve", "ï")


def test_normalised_before_it_is_rounded(tmp_path: Path) -> None:
    text = "1 qid:1 1:100000000 2:-1.7e308\n0 qid:1 1:100000001 2:1.7e308\n0 qid:1 1:100000002 2:0\n"
    assert read(write(tmp_path, text), normalize="query", dtype="float32").features.tolist() == [
        [0, 0],
        [0.5, 1],
        [1, 0.5],
    ]


def test_a_missing_feature_is_0_before_it_is_normalised(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 2:-4\n0 qid:1 1:3\n1 qid:2 1:9\n", "some.txt")
    assert read(path, normalize="query").features.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_presets(tmp_path: Path) -> None:
    assert {name: preset.n_features for name, preset in data.PRESETS.items()} == {
        "yahoo": 700, "yandex": 245, "mslr": 136, "mq2007": 46, "mq2008": 46, "istella": 220,
    }  # fmt: skip
    path = write(tmp_path, "2 qid:10 1:1 #docid = GX\n")
    dataset = read(path, preset="mslr")
    assert (dataset.n_features, dataset.max_grade, dataset.name) == (136, 4, "mslr")
    assert read(path, preset="yahoo", n_features=300).n_features == 300


def test_yandex_names_the_query_in_the_comment(tmp_path: Path) -> None:
    text = "1 1:0.5 245:1 # 3382\n0.07 7:0.25 # 3382 \n2.6 1:1 #11800 and more\n"
    dataset = read(write(tmp_path, text), preset="yandex")
    assert dataset.query_ids == ("3382", "11800")
    assert dataset.relevance.tolist() == [1, 0.07, 2.6]
    assert dataset.comments == ("", "", "and more")
    assert read(write(tmp_path, "1 1:0.5 # 3382\n"), preset="yandex").comments is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_istella_writes_the_largest_number_for_infinity(tmp_path: Path, dtype: str) -> None:
    huge = "1.79769313486231570000e+308"
    text = (
        f"1 qid:1 1:{huge} 2:3 3:-{huge} 4:{huge}\n0 qid:1 1:5 2:4 3:2 4:{huge}\n0 qid:1 1:1 3:1 4:{huge}\n"
    )
    raw = read(write(tmp_path, text), preset="istella", dtype=dtype)
    assert raw.features[:, :4].tolist() == [[5, 3, 1, 0], [5, 4, 2, 0], [1, 0, 1, 0]]
    normal = read(write(tmp_path, text), preset="istella", dtype=dtype, normalize="query")
    assert normal.features[:, :4].tolist() == [[1, 0.75, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]


def test_a_preset_of_ones_own(tmp_path: Path) -> None:
    mine = data.Preset("mine", n_features=2, max_grade=1)
    assert read(write(tmp_path, "1 qid:1 1:1\n"), preset=mine).name == "mine"


FINE = "1 qid:1 1:0.5 2:1\n"


def refusal(path: Path | list[Path], **options: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        data.read_letor(path, **options)
    return str(caught.value)


LINES = [
    ("best qid:1 1:1", "grade is not a finite number: 'best'"),
    ("nan qid:1 1:1", "grade is not a finite number: 'nan'"),
    ("inf qid:1 1:1", "grade is not a finite number: 'inf'"),
    ("1e400 qid:1 1:1", "grade is not a finite number: '1e400'"),
    ("1x qid:1 1:1", "grade is not a finite number: '1x'"),
    ("qid:1 1:1", "grade is not a finite number: 'qid:1'"),
    ("-1 qid:1 1:1", "grade is negative: '-1'"),
    ("-0.00000000000000000000001 qid:1 1:1", "grade is negative: '-0.00000000000000000000001'"),
    ("-1e-400 qid:1 1:1", None),  # too small to be told from 0
    ("1 1:1", "expected qid:<query> after the grade, found '1:1'"),
    ("1", "expected qid:<query> after the grade, found ''"),
    ("1 # qid:1", "expected qid:<query> after the grade, found ''"),
    ("1 qid: 1:1", "expected qid:<query> after the grade, found 'qid:'"),
    ("1 qid 1:1", "expected qid:<query> after the grade, found 'qid'"),
    ("1 QID:1 1:1", "expected qid:<query> after the grade, found 'QID:1'"),
    ("1 qid:1 5", "expected <feature>:<number>, found '5'"),
    ("1 qid:1 :5", "expected <feature>:<number>, found ':5'"),
    ("1 qid:1 a:5", "expected <feature>:<number>, found 'a:5'"),
    ("1 qid:1 -1:5", "expected <feature>:<number>, found '-1:5'"),
    ("1 qid:1 1.5:5", "expected <feature>:<number>, found '1.5:5'"),
    ("1 qid:1 1:5 qid:2", "expected <feature>:<number>, found 'qid:2'"),
    ("1 qid:1 0:5", "feature ids count from 1, found '0:5'"),
    ("1 qid:1 100001:5", "feature id is above 100,000, found '100001:5'; n_features= allows it"),
    (f"1 qid:1 {10**30}:5", f"feature id is above 100,000, found '{10**30}:5'; n_features= allows it"),
    ("1 qid:1 2:5 1:3 2:5", "feature 2 is given twice"),
    ("1 qid:1 2:", "feature 2 is not a finite number: ''"),
    ("1 qid:1 2: 5", "feature 2 is not a finite number: ''"),
    ("1 qid:1 2:NULL", "feature 2 is not a finite number: 'NULL'"),
    ("1 qid:1 2:nan", "feature 2 is not a finite number: 'nan'"),
    ("1 qid:1 2:-Infinity", "feature 2 is not a finite number: '-Infinity'"),
    ("1 qid:1 2:1e309", "feature 2 is not a finite number: '1e309'"),
    ("1 qid:1 2:1_0", "feature 2 is not a finite number: '1_0'"),
    ("1 qid:1 2:1.2.3", "feature 2 is not a finite number: '1.2.3'"),
    ("1 qid:1 2:0x1p3", "feature 2 is not a finite number: '0x1p3'"),
    ("1 qid:1 2:3:4", "feature 2 is not a finite number: '3:4'"),
    ("1 qid:1 2:" + "9" * 50 + "x", "feature 2 is not a finite number: '" + "9" * 38 + "...'"),
]


@pytest.mark.parametrize(("line", "message"), LINES)
@pytest.mark.parametrize("size", [8, SIZE])
def test_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str | None, size: int
) -> None:
    monkeypatch.setattr(letor_documents, "SIZE", size)
    path = tmp_path / "some.txt"
    path.write_text(f"# words\n\n{FINE}{line}\n{FINE}worse\n")
    if message is not None:
        assert refusal(path) == f"{path}, line 4: {message}"
    else:
        assert refusal(path).startswith(f"{path}, line 6: ")


def test_the_first_mistake_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text(f"{FINE}1 qid:1 1:1e400\n-1e-30 qid:1\nworse\n")
    assert refusal(path) == f"{path}, line 2: feature 1 is not a finite number: '1e400'"


def test_lines_are_counted_in_each_file(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    paths[0].write_text(FINE * 3)
    paths[1].write_bytes(gzip.compress((FINE + "oops\n").encode()))
    assert refusal(paths).startswith(f"{paths[1]}, line 2: ")
    assert refusal([paths[0], paths[1], paths[1]]).startswith(f"{paths[1]}, line 2: ")


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("5 qid:1 1:1", {"preset": "mslr"}, "grade is above 4: '5'"),
        ("1 qid:1 137:1", {"preset": "mslr"}, "feature id is not one of 136, found '137:1'"),
        ("1 qid:1 3:1", {"n_features": 2}, "feature id is not one of 2, found '3:1'"),
        ("1 qid:1 2:1", {"n_features": 2, "first_feature": 0}, "feature id is not one of 2, found '2:1'"),
        (
            "1 1:1",
            {"preset": "yandex"},
            "expected the query id in a comment at the end of the line, found none",
        ),
        (
            "1 1:1 # ",
            {"preset": "yandex"},
            "expected the query id in a comment at the end of the line, found none",
        ),
        ("1 qid:3 1:1 # 4", {"preset": "yandex"}, "expected <feature>:<number>, found 'qid:3'"),
        ("1 qid:1 1:1e39", {"normalize": None}, "feature 1 is too large for float32: '1e39'"),
        (
            "1 qid:1 1:-" + "9" * 39,
            {"normalize": None},
            "feature 1 is too large for float32: '-" + "9" * 37 + "...'",
        ),
    ],
)
def test_a_line_that_breaks_what_was_said_of_the_file(
    tmp_path: Path, line: str, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "some.txt"
    path.write_text(line)
    assert refusal(path, **options) == f"{path}, line 1: {message}"


@pytest.mark.parametrize("text", ["", "\n\n", "# words\n", "\r\n"])
def test_a_file_without_documents(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.txt"
    path.write_text(text)
    assert refusal(path) == f"{path}: no documents in the file"
    assert refusal(path, preset="mslr") == f"{path}: no documents in the file"
    assert refusal([path, path]) == f"{path} and the others: no documents in the file"


def test_a_file_without_features(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("1 qid:1\n0 qid:1\n")
    assert refusal(path) == f"{path}: no features in the file"


@pytest.mark.parametrize("cut", [5, 30, -4])
def test_a_broken_gzip_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "some.txt.gz"
    path.write_bytes(gzip.compress(FINE.encode() * 9)[:cut])
    assert refusal(path).startswith(f"{path}: broken gzip file, after line ")


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "some.txt.gz"
    packed = bytearray(gzip.compress(FINE.encode() * 9))
    packed[-6] ^= 1
    path.write_bytes(packed)
    assert refusal(path).startswith(f"{path}: broken gzip file, after line ")
    path.write_bytes(gzip.compress(FINE.encode()) + b"garbage")
    assert refusal(path).startswith(f"{path}: broken gzip file, after line 0: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalize": "all"}, "normalize must be 'query' or None, got 'all'"),
        ({"dtype": "int8"}, "dtype must be 'float32' or 'float64', got 'int8'"),
        (
            {"preset": "letor"},
            "preset must be one of 'yahoo', 'yandex', 'mslr', 'mq2007', 'mq2008', 'istella', got 'letor'",
        ),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"first_feature": 2}, "first_feature must be 0 or 1, got 2"),
    ],
)
def test_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "some.txt"
    path.write_text(FINE)
    assert refusal(path, **options) == message


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        data.read_letor(tmp_path / "nowhere.txt")
    with pytest.raises(FileNotFoundError, match=r"no \.txt or \.txt\.gz file in the folder"):
        data.read_letor(tmp_path)
    assert refusal([]) == "paths must name at least one file, got none"


TEXT = "1 qid:a 1:0.5 2:3 # docid = X\n0 qid:a 2:1 # docid = Ü\n2 qid:b 1:7\n"


def test_a_cache_is_kept_no_more(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text(TEXT)
    with pytest.warns(DeprecationWarning, match="cache is ignored"):
        assert data.read_letor(path, cache=True).n_documents == 3


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
    dataset = data.read_letor(real(name), preset=preset)
    assert dataset.name == name
    assert (dataset.n_queries, dataset.n_documents, dataset.n_features) == (queries, documents, features)
    assert dataset.max_grade == dataset.relevance.max() == grade
    assert dataset.lengths.max() == longest
    assert np.count_nonzero(np.maximum.reduceat(dataset.relevance, dataset.offsets[:-1]) == 0) == hopeless
    assert dataset.features.dtype == np.float32
    assert dataset.features.min() == 0
    assert dataset.features.max() == 1


def test_documents_are_named() -> None:
    mq2008 = data.read_letor(real("mq2008"))
    assert mq2008.query_ids[0] == "10002"
    assert mq2008.doc_ids is not None
    assert mq2008.doc_ids[0] == "GX008-86-4444840"
    assert mq2008.comments is not None
    assert mq2008.comments[0] == "docid = GX008-86-4444840 inc = 1 prob = 0.086622"
    clueweb09 = data.read_letor(real("clueweb09") / "fold1.txt.gz")
    assert clueweb09.doc_ids is not None
    assert all(clueweb09.doc_ids)


@pytest.mark.parametrize("file", ["mq2008/S1.txt.gz", "yahoo_sample/test.txt.gz", "mslr/mslr_dev.txt.gz"])
def test_bit_for_bit_as_another_reader_has_them(file: str) -> None:
    path = real(file)
    dataset = data.read_letor(path, normalize=None, dtype="float64")
    theirs, grades, queries = load_svmlight_file(str(path), query_id=True)
    np.testing.assert_array_equal(dataset.features, theirs.toarray())
    np.testing.assert_array_equal(dataset.relevance, grades)
    names = np.repeat(np.array([int(name) for name in dataset.query_ids]), dataset.lengths)
    np.testing.assert_array_equal(names, queries)
