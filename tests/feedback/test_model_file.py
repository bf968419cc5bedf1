"""Any click model as a file: the same model comes back, and mistakes name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import environments, feedback
from rankloop.feedback import ClickParameters, SavedModel, read_model, read_parameters

A = [0.5, 0.3, 0.1]

MODELS: list[feedback.ClickModel] = [
    feedback.CascadeModel(attraction=A),
    feedback.ClickChainModel(attraction=A, continuation=[0.9, 0.8, 0.3]),
    feedback.DependentClickModel(attraction=A, continuation=[0.6, 0.5]),
    feedback.DynamicBayesianModel(attraction=A, satisfaction=[0.7, 0.2, 0.4], continuation=0.9),
    feedback.PositionBasedModel(attraction=A, examination=[1.0, 0.5]),
    feedback.TrustBiasModel(
        attraction=A, examination=[1.0, 0.5], true_clicks=[1, 0.9], false_clicks=[0.2, 0.1]
    ),
    feedback.UserBrowsingModel(attraction=A, examination=[[1.0, 0.0], [0.4, 0.8]]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_same_model_comes_back(model: feedback.ClickModel, tmp_path: Path) -> None:
    saved = SavedModel(model, examination=[1.0, 0.5], items=("a", "b", "c"), provenance={"pages": 7})
    saved.save(tmp_path / "model.json")
    read = read_model(tmp_path / "model.json")
    assert type(read.model) is type(model)
    assert read.items == ("a", "b", "c")
    assert dict(read.provenance) == {"pages": 7}
    np.testing.assert_array_equal(read.examination, [1.0, 0.5])
    for clicks in ([0, 0], [0, 1], [1, 0], [1, 1]):
        assert read.model.likelihood([2, 0], clicks) == model.likelihood([2, 0], clicks)
    world = environments.ClickUsers(read.model, n_positions=2)
    assert world.n_items == 3
    near = environments.PositionBased.read(tmp_path / "model.json")
    assert near.n_positions == 2


def test_a_fit_that_did_not_converge_is_told_to_readers(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    SavedModel(MODELS[0], examination=[1.0], provenance={"converged": False}).save(path)
    with pytest.warns(feedback.UnconvergedWarning, match=r"model\.json"):
        read_model(path)


def test_wrong_files_and_arguments_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"model\.json: not JSON"):
        read_model(path)
    path.write_text("[1]")
    with pytest.raises(ValueError, match=r"model\.json: format must be"):
        read_model(path)
    SavedModel(MODELS[0], examination=[1.0]).save(path)
    contents = json.loads(path.read_text())
    path.write_text(json.dumps(contents | {"model": "psychic"}))
    with pytest.raises(ValueError, match=r"model must be one of cascade, .*got 'psychic'"):
        read_model(path)
    path.write_text(json.dumps(contents | {"parameters": {"attraction": [2.0]}}))
    with pytest.raises(ValueError, match=r"model\.json: attraction"):
        read_model(path)
    with pytest.raises(ValueError, match="items must be 3 names"):
        SavedModel(MODELS[0], examination=[1.0], items=("a",))
    with pytest.raises(ValueError, match="model must be a click model"):
        SavedModel("cascade", examination=[1.0])  # type: ignore[arg-type]


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pbm.json"
    saved = ClickParameters(
        attraction=[0.1, 1 / 3],  # type: ignore[arg-type]
        examination=[1.0, 0.2, 0.1],  # type: ignore[arg-type]
        items=("ä", "b"),
        provenance={"source": "me", "rows": 3},
    )
    saved.save(path)
    read = read_parameters(path)
    assert read.items == ("ä", "b")
    assert read.provenance == {"source": "me", "rows": 3}
    np.testing.assert_array_equal(read.attraction, [0.1, 1 / 3])
    np.testing.assert_array_equal(read.examination, [1.0, 0.2, 0.1])


def test_the_two_arrays_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "hand.json"
    path.write_text('{"attraction": [0.9, 0.1], "examination": [1, 0.5]}')
    read = read_parameters(path)
    assert read.items == ("0", "1")
    assert read.model().n_positions == 2


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ("[1", "not JSON"),
        ("[1]", "attraction and examination are missing"),
        ({"attraction": [0.5]}, "attraction and examination are missing"),
        ({"attraction": [1.5], "examination": [1]}, "attraction must lie between 0 and 1"),
        ({"attraction": [0.5], "examination": "x"}, "examination must be numbers"),
        ({"attraction": [0.5], "examination": [1], "items": ["a", "b"]}, "items must be 1 names"),
        ({"attraction": [0.5], "examination": [1], "items": 3}, "pbm.json"),
        ({"attraction": [0.5], "examination": [1], "format": "other"}, "format must be"),
    ],
)
def test_another_file_is_refused_by_name(contents: Any, why: str, tmp_path: Path) -> None:
    path = tmp_path / "pbm.json"
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    with pytest.raises(ValueError, match=why) as caught:
        read_parameters(path)
    assert "pbm.json" in str(caught.value)
