"""Saving rankers: state, class and arguments together, in a file or in a dictionary of arrays."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import base, measures
from rankloop.rankers import FTPL, FTRLPBM, Fixed, ListNet, RTop1F, Uniform
from rankloop.serving.log import records


def learnt(ranker: Any, rounds: int = 3) -> Any:
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        ranking = ranker.rank(ranker.example_context(rng), rng=rng)
        ranker.learn(ranking, np.ones(ranker.feedback.length(len(ranking.items))))
    return ranker


def same(one: Any, other: Any) -> bool:
    pairs = zip(one.state_arrays().items(), other.state_arrays().items(), strict=True)
    return all(name == also and np.array_equal(mine, theirs) for (name, mine), (also, theirs) in pairs)


def test_the_state_alone_is_arrays_of_numbers() -> None:
    # The service packs these into its snapshots, so there may be nothing more in them.
    ranker = FTRLPBM(n_items=4, n_positions=2)
    assert set(ranker.state_arrays()) == set(ranker.state._fields)
    assert set(ranker.save()) == {*ranker.state._fields, base.ORIGIN}
    for array in ranker.state_arrays().values():
        assert records.pack(array)


def test_a_file_holds_no_pickle(tmp_path: Path) -> None:
    RTop1F(n_items=5, measure=measures.dcg, k=np.int64(2)).save(tmp_path / "ranker.npz")
    with np.load(tmp_path / "ranker.npz", allow_pickle=False) as saved:
        told = json.loads(str(saved[base.ORIGIN]))
    assert told["class"] == "rankloop.rankers:RTop1F"
    assert told["parameters"] | {"n_items": 5, "measure": "dcg", "k": 2, "max_grade": 1} == told["parameters"]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (RTop1F(n_items=5, horizon=999_999), "RTop1F with horizon=100, this ranker has horizon=999999"),
        (
            RTop1F(n_items=5, horizon=100, measure="sum_loss"),
            "RTop1F with measure='dcg', this ranker has measure='sum_loss'",
        ),
        (RTop1F(n_items=6, horizon=100), "RTop1F with n_items=5, this ranker has n_items=6"),
        (FTPL(n_items=5, horizon=100), "saved state is of RTop1F, this ranker is FTPL"),
    ],
)
@pytest.mark.parametrize("form", ["file", "arrays", "savez"])
def test_another_configuration_is_refused(form: str, other: Any, sentence: str, tmp_path: Path) -> None:
    ranker = learnt(RTop1F(n_items=5, horizon=100))
    before = other.state_arrays()
    saved: Any = ranker.save()
    if form == "file":
        saved = tmp_path / "ranker"
        ranker.save(saved)
    if form == "savez":
        np.savez(tmp_path / "arrays.npz", **saved)
        saved = dict(np.load(tmp_path / "arrays.npz"))
    with pytest.raises(ValueError, match=sentence):
        other.load(saved)
    assert all(np.array_equal(before[name], value) for name, value in other.state_arrays().items())


def test_the_same_arguments_in_another_form_are_the_same() -> None:
    saved = RTop1F(n_items=5, measure="dcg").save()
    RTop1F(n_items=np.int32(5), measure=measures.dcg, horizon=None).load(saved)
    Fixed(order=np.array([1, 0])).load(Fixed(order=(1, 0)).save())
    ListNet(n_features=2, learning_rate=[0.1, 0.5]).load(
        ListNet(n_features=2, learning_rate=(0.1, 0.5)).save()
    )  # type: ignore[arg-type]


def test_what_an_older_version_saved_is_loaded() -> None:
    ranker = learnt(RTop1F(n_items=5, horizon=100))
    old = {name: value for name, value in ranker.save().items() if name != base.ORIGIN}
    other = RTop1F(n_items=5, horizon=100)
    other.load(old)
    assert same(ranker, other)


class Coloured(Uniform):
    """A ranker with an argument that JSON cannot hold."""

    def __init__(self, *, n_items: int, colour: Any = None) -> None:
        super().__init__(n_items=n_items)


def test_an_argument_that_a_file_cannot_hold_is_named_and_not_compared() -> None:
    saved = learnt(Coloured(n_items=3, colour=object())).save()
    told = base.read_origin(saved)
    assert told is not None
    assert told["left_out"] == {"colour": "object"}
    other = Coloured(n_items=3, colour=object())
    other.load(saved)
    assert other.state.t[0] == 3


def test_an_argument_that_is_no_longer_there_is_named() -> None:
    ranker = Uniform(n_items=3)
    told = json.loads(str(ranker.save()[base.ORIGIN]))
    told["parameters"]["speed"] = 3
    with pytest.raises(ValueError, match="Uniform with speed=3, which Uniform here does not have"):
        ranker.load(ranker.save() | {base.ORIGIN: np.array(json.dumps(told))})


@pytest.mark.parametrize(
    "wrong", ["", "[]", "{}", '{"class": 3, "parameters": {}, "left_out": {}}', "nonsense"]
)
def test_an_origin_that_is_none_is_refused(wrong: str) -> None:
    ranker = Uniform(n_items=3)
    with pytest.raises(ValueError, match=r"'ranker\.json' must hold a class and its parameters"):
        ranker.load(ranker.save() | {base.ORIGIN: np.array(wrong)})


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ranker.npz"
    Uniform(n_items=3).save(path)
    before = path.read_bytes()

    def half(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="disk full"):
        learnt(Uniform(n_items=3)).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_ranker_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(ValueError, match=r"notes\.txt: not a saved ranker: it is no \.npz file"):
        Uniform(n_items=3).load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"notes\.txt: not a saved ranker"):
        Uniform(n_items=3).load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(ValueError, match=r"saved state has \['a\.txt'\], Uniform needs"):
        Uniform(n_items=3).load(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"one\.npy: not a saved ranker"):
        Uniform(n_items=3).load(tmp_path / "one.npy")
