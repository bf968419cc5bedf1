"""The commands that start a service and make rankers and keys."""

from __future__ import annotations

import json
from pathlib import Path

import rankloop
from tests.cli.call import call, refused
from tests.serving.process import Service

MADE = ("create", "unwind", "--algorithm", "RTop1F", "--items", "walk, meditate,music", "--seed", "3")


def test_a_ranker_is_made_in_a_folder(tmp_path: Path) -> None:
    folder, names = tmp_path / "store", tmp_path / "names.txt"
    place = ("--data", str(folder))
    assert call(*MADE, *place).output == f"unwind: created (folder {folder})\n"
    assert call(*MADE, *place).output == f"unwind: is there already, just so (folder {folder})\n"
    names.write_text("walk\ntea, green\n\nnap\n")
    pages = ("create", "pages", "--algorithm", "FTRLPBM", "--items", f"@{names}", "--set", "n_positions=3")
    call(*pages, "--policy", "answers=union", "--policy", "gather_seconds=5", *place)
    call("create", "docs", "--algorithm", "RTopKF", "--set", "n_features=3", *place)
    found = {one["name"]: one for one in json.loads(call("rankers", "--json", *place).output)}
    assert sorted(found["unwind"]["current"]) == ["meditate", "music", "walk"]
    assert sorted(found["pages"]["current"]) == ["nap", "tea, green", "walk"]
    assert (found["pages"]["policy"]["answers"], found["pages"]["policy"]["gather_seconds"]) == ("union", 5.0)
    assert found["docs"]["parameters"] == {"n_features": 3}


def test_a_comparison_is_made_and_its_verdict_listed(tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    call("create", "vs", "--algorithm", "Comparison", "--set", 'rankings=["engine", "new"]', *place)
    listed = call("rankers", *place).output
    assert "vs  Comparison, 0 rounds learnt, 1 rows\n  Nothing is decided yet, after 0 searches.\n" in listed
    (found,) = json.loads(call("rankers", "--json", *place).output)
    assert found["comparison"]["rankings"] == ["engine", "new"]
    wrong = ("create", "one", "--algorithm", "Comparison", "--set", 'rankings=["engine"]')
    assert "rankings must be two names or more" in refused(*wrong, *place)


def test_a_mistake_makes_nothing(tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    for wrong, told in (
        (("create", "a b", "--algorithm", "RTop1F", "--items", "x"), "$.name"),
        (("create", "a", "--algorithm", "Nobody", "--items", "x"), "Nobody"),
        (("create", "a", "--algorithm", "RTop1F"), "items"),
        (("create", "a", "--algorithm", "RTop1F", "--items", "x,x"), "must not repeat"),
        (("create", "a", "--algorithm", "RTop1F", "--items", "x", "--set", "k"), "--set must be KEY=VALUE"),
        (("create", "a", "--algorithm", "RTop1F", "--items", "x", "--policy", "late=maybe"), "policy.late"),
        (("create", "a", "--algorithm", "RTop1F", "--items", "x", "--policy", "new=1"), "new"),
        (("create", "a", "--algorithm", "RTop1F", "--items", "@nowhere"), "nowhere"),
    ):
        assert told in refused(*wrong, *place)
    assert json.loads(call("rankers", "--json", *place).output) == []


def test_a_start_says_version_store_and_keys_and_a_running_service_makes_rankers(tmp_path: Path) -> None:
    with Service("--data", str(tmp_path)) as service:
        assert service.process.stdout is not None
        said = service.process.stdout.readline()
        keys = "none are needed by callers on this machine"
        assert said == f"version {rankloop.__version__}; store: folder {tmp_path}; API keys: {keys}\n"
        made = call(*MADE, "--url", service.url).output
        assert made == f"unwind: created ({service.url})\n"
        assert "just so" in call(*MADE, "--url", service.url).output
        assert service.client().ranker("unwind").algorithm == "RTop1F"
        assert "409 conflict" in refused(*MADE[:-1], "4", "--url", service.url)
        service.stop()
    call("keys", "add", "--role", "events", "--data", str(tmp_path))
    with Service("--data", str(tmp_path)) as service:
        assert service.process.stdout is not None
        assert service.process.stdout.readline().endswith("; API keys: needed\n")
        assert "401 unauthorized" in refused(*MADE, "--url", service.url)


def test_a_key_in_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    assert "there is no store in" in refused("keys", "add", "--data", str(tmp_path / "typo"))
    assert not (tmp_path / "typo").exists()
    assert call("keys", "add", "--new-store", "--data", str(tmp_path / "new")).output.startswith("rl_")


def test_an_origin_that_no_browser_sends_is_refused_before_anything_starts(tmp_path: Path) -> None:
    sentence = refused("serve", "--data", tmp_path / "store", "--allow-origin", "https://shop.example/")
    assert sentence == (
        "origin must be as browsers write it, such as https://shop.example, got 'https://shop.example/'"
    )
    assert not (tmp_path / "store").exists()
