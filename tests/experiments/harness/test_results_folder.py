"""Where results lie, and files that are whole or not there at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rankloop.experiments.harness.results_folder import ResultFolder
from rankloop.whole_file import write_whole


def test_the_layout() -> None:
    folder = ResultFolder(out=Path("results"), experiment="toy")
    found = [folder.results, folder.claims, folder.job("12ab"), folder.figure("curve", "png")]
    names = ["results.parquet", "claims.json", "jobs/12ab.parquet", "curve.png"]
    assert [path.as_posix() for path in found] == [f"results/toy/{name}" for name in names]


def test_folders_are_made_and_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "rows.txt"
    for text in ("old", "new"):
        write_whole(path, lambda part, text=text: part.write_text(text))  # type: ignore[misc]
        assert path.read_text() == text
    assert [file.name for file in path.parent.iterdir()] == ["rows.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("old")

    def write(part: Path) -> None:
        part.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["rows.txt"]


@pytest.mark.parametrize(
    "problem",
    [OSError(errno.ENOSPC, "no room"), RuntimeError("parquet: No space left on device (os error 28)")],
    ids=["of the system", "of a library"],
)
def test_a_full_disk_is_an_error_that_names_the_file(problem: Exception, tmp_path: Path) -> None:
    def write(part: Path) -> None:
        raise problem

    with pytest.raises(OSError, match=r"rows\.txt") as told:
        write_whole(tmp_path / "rows.txt", write)
    assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(tmp_path / "rows.txt"))


def test_an_error_that_is_not_of_the_system_stays(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_whole(tmp_path / "rows.txt", lambda part: 1 // 0)


def test_left_overs_are_swept_and_finished_files_stay(tmp_path: Path) -> None:
    folder = ResultFolder(out=tmp_path, experiment="toy")
    folder.jobs.mkdir(parents=True)
    for path in (folder.jobs / ".ab.parquet.1.part", folder.path / ".claims.json.1.part", folder.claims):
        path.write_text("x")
    folder.sweep()
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["claims.json"]
