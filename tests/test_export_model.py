"""Exported models against the formulas of the engines, in their arithmetic, and against our own scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import Client
from rankloop.export_model import ltr_model, solr_model
from rankloop.rankers import PDGD
from tests.cli.call import call, refused
from tests.serving.process import Service

F = np.float32
NAMES = ["bm25", "stars", "price", "age"]
SCALES = {
    "bm25": {"mean": 7.3, "standard_deviation": 2.9},
    "price": {"minimum": 1.5, "maximum": 899.95},
}
NORMALIZERS = {
    "standard": ("mean", "standard_deviation", "StandardNormalizer", "avg", "std"),
    "min_max": ("minimum", "maximum", "MinMaxNormalizer", "min", "max"),
}


def plugin_score(body: str, rows: Any, feature_set: list[str]) -> list[float]:
    """LinearRanker of the plugin: floats, in the order of the set; features are normalised first."""
    model = json.loads(body)["model"]["model"]
    assert model["type"] == "model/linear"
    scores = []
    for row in rows:
        score = F(0)
        for name, value in zip(feature_set, row, strict=True):
            value = F(value)
            for kind, numbers in model.get("feature_normalizers", {}).get(name, {}).items():
                low, high = (F(numbers[word]) for word in NORMALIZERS[kind][:2])
                value = (value - low) / high if kind == "standard" else (value - low) / (high - low)
            score = score + value * F(model["definition"].get(name, 0.0))
        scores.append(float(score))
    return scores


def solr_score(body: str, rows: Any) -> list[float]:
    """LinearModel of Solr: floats, in the order of `features`; numbers of normalizers are texts."""
    model = json.loads(body)
    assert model["class"] == "org.apache.solr.ltr.model.LinearModel"
    scores = []
    for row in rows:
        score = F(0)
        for feature, value in zip(model["features"], row, strict=True):
            value = F(value)
            norm = feature.get("norm")
            if norm is not None:
                kind = next(
                    one for one in NORMALIZERS.values() if norm["class"].endswith(f"ltr.norm.{one[2]}")
                )
                assert all(isinstance(text, str) for text in norm["params"].values())
                low, high = (F(norm["params"][word]) for word in kind[3:])
                value = (value - low) / (high if kind[3] == "avg" else high - low)
            score = score + value * F(model["params"]["weights"][feature["name"]])
        scores.append(float(score))
    return scores


def in_single(weights: Any, rows: Any, names: list[str], scales: Any) -> list[float]:
    """The formula in float32, from the ranker's weights themselves."""
    scores = []
    for row in np.asarray(rows, F):
        terms = []
        for name, value, weight in zip(names, row, np.asarray(weights, F), strict=True):
            low, high = (F(one) for one in scales.get(name, {"a": 0, "b": 1}).values())
            width = high - low if "minimum" in scales.get(name, {}) else high
            terms.append((value - low) / width * weight)
        scores.append(float(np.add.accumulate(np.array([0, *terms], F))[-1]))
    return scores


def learnt() -> PDGD:
    rng = np.random.default_rng(3)
    ranker = PDGD(n_features=4, warm_start=[1.0, 0.0, 0.0, 0.0])
    for _ in range(300):
        rows = rng.random((20, 4))
        shown = ranker.rank(rows, rng=rng)
        ranker.learn(shown, rng.random(10) < rows[shown.items[:10], 1])
    return ranker


def test_a_learnt_ranker_scores_the_same_in_both_engines() -> None:
    weights = learnt().weights_now()
    assert weights is not None
    assert weights[1] > 0
    rows = np.random.default_rng(1).normal(size=(200, 4)).astype(F) * [5.0, 1.0, 300.0, 40.0]
    for scales in ({}, SCALES):
        ltr = json.dumps(ltr_model("shop", weights, NAMES, scales=scales))
        solr = json.dumps(solr_model("shop", weights, NAMES, scales=scales))
        expected = in_single(weights, rows, NAMES, scales)
        assert plugin_score(ltr, rows, NAMES) == expected  # bit for bit
        assert solr_score(solr, rows) == expected
        if not scales:
            ours = rows.astype(F).astype(np.float64) @ weights
            size = np.abs(rows.astype(F).astype(np.float64)) @ np.abs(weights)
            assert (np.abs(np.array(expected) - ours) <= 1e-6 * size).all()
            moved = solr_score(json.dumps(solr_model("shop", weights * (1 + 1e-5), NAMES)), rows)
            assert not (np.abs(np.array(moved) - ours) <= 1e-6 * size).all()


def test_scaled_features_come_to_the_rankers_own_score() -> None:
    """Raw features in the engine, scaled ones here: within 1e-6 of what the parts of the sum come to."""
    weights = learnt().weights_now()
    raw = np.random.default_rng(2).random((100, 4)) * [20, 5, 900, 100]
    raw = raw.astype(F)
    scaled = raw.astype(np.float64)
    scaled[:, 0] = (scaled[:, 0] - 7.3) / 2.9
    scaled[:, 2] = (scaled[:, 2] - 1.5) / (899.95 - 1.5)
    ranker = learnt()
    theirs = np.array(plugin_score(json.dumps(ltr_model("shop", weights, NAMES, scales=SCALES)), raw, NAMES))
    ours = ranker.scores(scaled)
    size = (np.abs(scaled) + np.array([2 * 7.3 / 2.9, 0, 2 * 1.5 / 898.45, 0])) @ np.abs(ranker.state.w)
    assert (np.abs(theirs - ours) <= 1e-6 * size).all()


_numbers = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4),
    row=st.lists(_numbers, min_size=4, max_size=4),
    mean=st.floats(-1e3, 1e3),
    deviation=st.floats(1e-3, 1e3),
)
def test_any_weights_come_over_bit_for_bit(weights: Any, row: Any, mean: float, deviation: float) -> None:
    scales = {"stars": {"mean": mean, "standard_deviation": deviation}}
    expected = in_single(weights, [row], NAMES, scales)
    assert plugin_score(json.dumps(ltr_model("m", weights, NAMES, scales=scales)), [row], NAMES) == expected
    assert solr_score(json.dumps(solr_model("m", weights, NAMES, scales=scales)), [row]) == expected


def test_the_documented_shapes() -> None:
    """As the plugin and Solr document them."""
    scales = {"a": {"standard_deviation": 2.0, "mean": 1.0}, "b": {"minimum": 0.0, "maximum": 4.0}}
    assert ltr_model("m", [1, 0.5], ["a", "b"], scales=scales) == {
        "model": {
            "name": "m",
            "model": {
                "type": "model/linear",
                "definition": {"a": 1.0, "b": 0.5},
                "feature_normalizers": {
                    "a": {"standard": {"mean": 1.0, "standard_deviation": 2.0}},
                    "b": {"min_max": {"minimum": 0.0, "maximum": 4.0}},
                },
            },
        }
    }
    norm = "org.apache.solr.ltr.norm."
    assert solr_model("m", [1, 0.5], ["a", "b"], scales=scales, store="s") == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "store": "s",
        "name": "m",
        "features": [
            {
                "name": "a",
                "norm": {"class": f"{norm}StandardNormalizer", "params": {"avg": "1.0", "std": "2.0"}},
            },
            {
                "name": "b",
                "norm": {"class": f"{norm}MinMaxNormalizer", "params": {"min": "0.0", "max": "4.0"}},
            },
        ],
        "params": {"weights": {"a": 1.0, "b": 0.5}},
    }


@pytest.mark.parametrize("write", [ltr_model, solr_model])
@pytest.mark.parametrize(
    ("weights", "names", "scales", "words"),
    [
        ([1.0], ["a", "b"], None, "features must be 1 names"),
        ([], [], None, "features must be 0 names"),
        ([1.0, 2.0], ["a", "a"], None, "none twice"),
        ([1.0, 2.0], ["a", ""], None, "none twice"),
        ([[1.0], [2.0]], ["a", "b"], None, "features must be 2 names"),
        ([1.0, np.nan], ["a", "b"], None, "the weight of 'b' must be finite"),
        ([1.0, 1e39], ["a", "b"], None, "the weight of 'b' must be finite in float32, got 1e"),
        (["x"], ["a"], None, "weights must be numbers"),
        ([1.0], ["a"], {"b": {"mean": 0, "standard_deviation": 1}}, "there is none called 'b'"),
        ([1.0], ["a"], {"a": {"mean": 0}}, "the scale of 'a' must have"),
        (
            [1.0],
            ["a"],
            {"a": {"mean": 0, "standard_deviation": 0}},
            "standard_deviation of 'a' must be above 0",
        ),
        ([1.0], ["a"], {"a": {"mean": 0, "standard_deviation": 1e-60}}, "must be above 0 in float32"),
        ([1.0], ["a"], {"a": {"minimum": 1, "maximum": 1 + 1e-12}}, "maximum of 'a' must be above minimum"),
        ([1.0], ["a"], {"a": {"minimum": "0", "maximum": 1}}, "minimum of 'a' must be a number"),
    ],
)
def test_what_cannot_be_written_is_named(
    write: Any, weights: Any, names: Any, scales: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        write("m", weights, names, scales=scales)


def test_the_command_writes_what_the_service_has_learnt(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    rows = np.random.default_rng(1).random((8, 2)).round(3)
    with Service("--data", str(folder)) as service:
        client = Client(service.url)
        client.create(
            "shop",
            algorithm="PDGD",
            items=[f"p{i}" for i in range(8)],
            features=rows.tolist(),
            feature_names=["bm25", "stars"],
            parameters={"n_features": 2, "n_positions": 4, "warm_start": [1.0, 0.0]},
        )
        client.create("other", algorithm="RTop1F", items=["a", "b"])
        for i in range(5):
            shown = client.rank("shop", decision_id=str(i))
            client.feedback("shop", shown.decision_id, clicked=shown.items[1:2])
        beside = call("export-model", "shop", "--data", folder).output
        explained = client.item_features("shop", "p0").features
        service.stop()
    told = json.loads(beside)["model"]
    weights = {one.name: float(F(one.weight)) for one in explained}
    assert (told["name"], told["model"]["definition"]) == ("shop", weights)
    assert weights["bm25"] != 1.0
    scales = tmp_path / "scales.json"
    scales.write_text(json.dumps({"b": {"mean": 1.0, "standard_deviation": 2.0}}))
    solr = call(
        *("export-model", "shop", "--for", "solr", "--features", "a,b", "--scales", scales, "--model", "m"),
        *("--data", folder),
    ).output
    assert json.loads(solr)["params"]["weights"] == dict(zip("ab", weights.values(), strict=True))
    assert "StandardNormalizer" in solr
    for wrong, words in (
        (("other",), "must be a linear ranker"),
        (("nobody",), "there is no ranker 'nobody'"),
        (("shop", "--features", "a"), "--features must be 2 names, got 1: a"),
        (("shop", "--scales", tmp_path / "none"), "--scales must be a file of JSON"),
        (("shop", "--scales", scales), "there is none called 'b'"),
    ):
        assert words in refused("export-model", *wrong, "--data", folder)
