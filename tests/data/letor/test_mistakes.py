"""Every mistake is named, with the file and the line."""

import functools
import gzip
from pathlib import Path
from typing import Any

import pytest

from rankloop import data
from rankloop.data import text_blocks

FINE = "1 qid:1 1:0.5 2:1\n"


def refusal(path: Path | list[Path], **options: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        data.read_letor(path, **{"cache": False, **options})
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
@pytest.mark.parametrize("size", [8, text_blocks.SIZE])
def test_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str | None, size: int
) -> None:
    monkeypatch.setattr(text_blocks, "blocks", functools.partial(text_blocks.blocks, size=size))
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
    assert refusal(path).startswith(f"{path}: broken gzip file, after line 1: ")


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
