"""The folder of real data: beside the project, never inside it."""

import os
from pathlib import Path

VARIABLE = "RANKLOOP_DATA"
DEFAULT = Path("..", "shared", "data")


class DataMissing(FileNotFoundError):
    """A real dataset is not on this machine; the message is one line, fit for a test's skip reason."""


def folder() -> Path:
    """The folder of the real data, whether or not it exists.

    The environment variable ``RANKLOOP_DATA`` names it. Unset or empty, it is ``../shared/data`` seen from
    the project's checkout when the package runs from one, else from the working directory.

    Returns
    -------
    Path
        The folder, whether or not it is there.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    # src/rankloop/data/ lies three levels below a checkout; installed, there is no pyproject.toml up there.
    checkout = Path(__file__).resolve().parents[3]
    start = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return Path(os.path.normpath(start / DEFAULT))


def find(relative: str | Path) -> Path:
    """The path of a file or folder of the real data, such as ``"ratings/ml-latest-small"``.

    Parameters
    ----------
    relative : str or Path
        The path below the data folder.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    DataMissing
        When it is not there; the message says what is missing, where it was looked for, and what to set.
    """
    if Path(relative).is_absolute():
        raise ValueError(f"relative must be a path inside the data folder, got {str(relative)!r}")
    start = folder()
    path = start / relative
    if not path.exists():
        raise DataMissing(
            f"real data missing: no {Path(relative).as_posix()} in {start};"
            f" set {VARIABLE} to the folder that holds it"
        )
    return path
