"""Finding the real data, and saying clearly when it is not there."""

import importlib
from pathlib import Path

import pytest

from rankloop import data

# By name, because `data.folder` is the function of that name.
folder_module = importlib.import_module("rankloop.data.data_folder")


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
