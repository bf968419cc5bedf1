"""`rankloop classify` and `rankloop rates`: words for people, JSON for programs, mistakes named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rankloop import games
from rankloop.games.verdict import load
from tests.cli.call import call, refused


def run(*words: object, code: int = 0) -> str:
    return call(*words, code=code).output


def test_words() -> None:
    told = run("classify", "--measure", "dcg", "--items", "10", "--top", "1")
    assert "learnable, but slowly" in told
    assert "T^(2/3)" in told
    assert "Feedback on the top two would not help, on nine would" in told
    assert "rankers.TopFTRL(n_items=10, measure='dcg', k=1)" in told
    hopeless = " ".join(run("classify", "--measure", "ndcg@10", "--items", "50", "--top", "5").split())
    assert "not learnable" in hopeless
    assert "on 49 would: then it is learnable, slowly; with 50 it is quickly learnable" in hopeless


def test_json() -> None:
    for measure, items, top, class_, rate in (
        ("dcg", 10, 1, "hard", "T^(2/3)"),
        ("ndcg@10", 50, 5, "hopeless", "T"),
        ("precision@3", 10, 1, "easy", "T^(1/2)"),
        ("precision@3", 3, 1, "trivial", "0"),
    ):
        told = json.loads(run("classify", "--measure", measure, "--items", items, "--top", top, "--json"))
        wanted = {"class": class_, "rate": rate, "measure": measure, "items": items, "top": top}
        assert {key: told[key] for key in wanted} == wanted
        assert (told.get("forced_regret", 0) > 0) == (class_ == "hopeless")


@pytest.mark.parametrize("route", ["cells", "structure"])
def test_verify_proof(tmp_path: Path, route: str) -> None:
    file = tmp_path / "proof.json"
    run("classify", "--measure", "ndcg", "--items", "3", "--route", route, "--witness", file)
    verdict = load(file)
    assert verdict.route == route
    assert games.verify(games.ranking_game(measure="ndcg", n_items=3, k=1), verdict)
    assert "The proof holds. ndcg, 3 items" in run("verify-proof", file)
    forged = json.loads(file.read_text()) | {"class": "easy"}
    file.write_text(json.dumps(forged))
    told = run("verify-proof", str(file), code=1)
    assert told.startswith("Refused: ")
    assert len(told.splitlines()) == 1
    file.write_text(json.dumps(forged | {"witness": {**forged["witness"], "worlds": {"outcomes": 3}}}))
    assert "is not a saved verdict" in run("verify-proof", str(file), code=2)
    file.write_text(json.dumps(forged | {"n_items": "many"}))
    assert "is about no game" in run("verify-proof", str(file), code=2)


def test_verify_proof_of_large_and_own_games(tmp_path: Path) -> None:
    file, pennies = tmp_path / "proof.json", tmp_path / "pennies.csv"
    run("classify", "--measure", "ndcg@10", "--items", "1000000", "--top", "5", "--witness", str(file))
    assert "hopeless, regret of order T" in run("verify-proof", str(file))
    pennies.write_text("0,1\n1,0\n\n?,?\n?,?\n")
    run("classify", "--game", str(pennies), "--witness", str(file))
    assert "A game of 2 actions and 2 outcomes: hopeless" in run(
        "verify-proof", str(file), "--game", str(pennies)
    )
    assert "give it with --game FILE" in run("verify-proof", str(file), code=2)
    pennies.write_text("0,1\n1,0\n\na,b\n?,?\n")
    assert run("verify-proof", str(file), "--game", str(pennies), code=1).startswith("Refused: ")


def test_bad_proof_files(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    for text in ("", "[]", "{}", '{"format": 1}', "nonsense"):
        file.write_text(text)
        assert "is not a saved verdict" in refused("verify-proof", file)
    assert "No such file" in refused("verify-proof", tmp_path / "nowhere.json")


def test_near_ties_in_a_file_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "game.csv").write_text("0.30000000000000004,1\n0.3,1\n\n?,?\n?,?\n")
    assert "Warning: loss[1, 0] = 0.3" in run("classify", "--game", str(tmp_path / "game.csv"))


def test_a_game_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "pennies.csv").write_text("0,1\n1,0\n\n?,?\n?,?\n")
    told = json.loads(run("classify", "--game", str(tmp_path / "pennies.csv"), "--json"))
    assert (told["class"], told["actions"], told["pareto"]) == ("hopeless", 2, [0, 1])
    words = " ".join(run("classify", "--game", str(tmp_path / "pennies.csv")).split())
    assert "A game of 2 actions and 2 outcomes" in words
    assert "Actions 0 and 1 compete, and nobody sees which is better" in words


def test_what_cannot_be_classified_is_one_sentence() -> None:
    for words, message in (
        ("", "give either --measure NAME or --game FILE"),
        ("--measure dcg --game x.csv", "give either"),
        ("--measure nope", "is not known; known are"),
        ("--measure dcg --items 3 --top 4", "k must be a whole number from 1 to 3"),
        ("--measure dcg --items 0", "n_items must be"),
        ("--measure auc --grades 3", "takes relevance 0 or 1"),
        ("--measure dcg --route guess", "route must be one of"),
        ("--measure dcg --items 12 --route cells", "479,001,600 orders"),
        ("--game nowhere.csv", "there is no such file"),
        ("--measure dcg --witness /nowhere/proof.json", "cannot write"),
    ):
        assert message in refused("classify", *words.split())


def test_feedback_models() -> None:
    told = run("classify", "--measure", "dcg", "--items", "3", "--feedback", "first click")
    assert "dcg, 3 items, feedback 'first click':" in told
    assert "learnable, but slowly" in told
    assert "feedback must be one of" in run("classify", "--measure", "dcg", "--feedback", "guess", code=2)


def test_a_proof_about_other_feedback_is_verified(tmp_path: Path) -> None:
    proof = str(tmp_path / "proof.json")
    run("classify", "--measure", "dcg", "--items", "3", "--feedback", "position 2", "--witness", proof)
    assert "The proof holds. dcg, 3 items, feedback 'position 2': easy" in run("verify-proof", proof)


def test_a_classified_game_is_played() -> None:
    words = ("classify", "--measure", "precision@1", "--items", "2", "--play", "--rounds", "300")
    told = run(*words)
    assert "Regret of games.Player over 300 rounds:" in told
    assert "near: regret " in told
    played = json.loads(run(*words, "--json"))["played"]
    assert [one["world"] for one in played] == ["far from the wall", "nearer", "near"]
    assert all(one["regret"] < one["regret_bound"] for one in played)
    refused = run("classify", "--measure", "ndcg", "--items", "3", "--play", code=2)
    assert "the game is hopeless: regret grows linearly" in refused
    alike = run("classify", "--measure", "precision@2", "--items", "2", "--play", "--rounds", "50")
    assert "any world: regret 0.0" in alike


def test_rates() -> None:
    assert "average_precision" in run("rates", "--items", "4")
    (row,) = json.loads(run("rates", "--items", "3", "--measure", "ndcg", "--json"))["rates"]
    assert row["classes"] == ["hopeless", "hard", "easy"]
    assert row["sources"] == ["2015", "ours", "ours"]
    by_cells = json.loads(run("rates", "--items", "3", "--measure", "ndcg", "--route", "cells", "--json"))
    assert by_cells["rates"] == [row]
