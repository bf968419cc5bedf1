"""A log that an earlier version wrote: this one opens it, finds no fault, shows the same lists, and goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.guards import stored_log

# Rankers whose algorithm has a newer version: refused as they are, and served after an upgrade.
NEWER = ("clicks", "measured", "thompson")
FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob(f"*/{stored_log.STORE}"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_log_of_an_earlier_version_is_verified_served_and_learnt_from(folder: Path, tmp_path: Path) -> None:
    expected = json.loads((folder / stored_log.EXPECTED).read_text())
    data = stored_log.unpack(folder, tmp_path)
    with pytest.raises(RuntimeError, match="its log is of version"):
        stored_log.command("verify", "--data", str(data))
    for name in NEWER:
        assert f"{name}: from row" in stored_log.command("upgrade", name, "--data", str(data))
    verdict = stored_log.command("verify", "--data", str(data)).splitlines()
    assert len(verdict) == len(expected["verify"])
    for found, before in zip(verdict, expected["verify"], strict=True):
        assert "adds up" in found
        assert found == before or found.startswith(NEWER)
    with stored_log.service(data) as client:
        lists = stored_log.next_lists(client)
        assert lists.keys() == expected["rankers"].keys()
        for name in lists.keys() - set(NEWER):
            assert lists[name] == expected["rankers"][name]
        for name in stored_log.FEEDBACK:
            before = client.ranker(name)
            kind, length = stored_log.FEEDBACK[name]
            # A list that the earlier version showed, and one of this version.
            assert client.feedback(name, "open", **{kind: [1.0] + [0.0] * (length - 1)}).status == "accepted"
            stored_log.one_round(client, name, 51)
            assert client.ranker(name).last_seq == before.last_seq + 3
        assert client.ranker("thompson").rounds == expected["rankers"]["thompson"]["rounds"] + 2
    grown = stored_log.command("verify", "--data", str(data)).splitlines()
    assert len(grown) == len(expected["verify"])
    assert all("adds up" in line for line in grown)


def test_there_is_a_stored_log() -> None:
    assert FOLDERS
    assert all((folder / stored_log.STORE).stat().st_size < 300_000 for folder in FOLDERS)
