"""Off-policy values: unbiased by full enumeration, covered by their intervals, refused where the log says nothing."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop import data, logs, rankers
from rankloop.feedback import CascadeModel, ClickModel, LoggedLists, PositionBasedModel
from rankloop.logs import off_policy
from rankloop.logs.off_policy import ESTIMATORS

N, M = 3, 2
LISTS = np.array(list(itertools.permutations(range(N), M)))
CLICKS = np.array(list(itertools.product((0, 1), repeat=M)))
PBM = PositionBasedModel(attraction=[0.2, 0.7, 0.5], examination=[0.9, 0.4])
CASCADE = CascadeModel(attraction=[0.2, 0.7, 0.5])
LOGGED = np.array([0.1, 0.25, 0.2, 0.05, 0.3, 0.1])  # chances of the six lists in the log
TARGET = np.array([0.0, 0.4, 0.3, 0.2, 0.1, 0.0])  # and of the policy in question


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Nothing is warned of unless the test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def cells_of(chances: np.ndarray) -> np.ndarray:
    cells = np.zeros((N, M))
    for chance, items in zip(chances, LISTS, strict=True):
        cells[items, np.arange(M)] += chance
    return cells


def world(model: ClickModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every list with every way to click it: the items, the clicks, and the chance of both in the log."""
    items = np.repeat(LISTS, len(CLICKS), axis=0)
    clicks = np.tile(CLICKS, (len(LISTS), 1))
    return items, clicks, np.repeat(LOGGED, len(CLICKS)) * model.likelihood(items, clicks)


def truth(model: ClickModel, v: np.ndarray) -> float:
    return float(TARGET @ (model.click_probabilities(LISTS) * v).sum(axis=1))


def weights(items: np.ndarray, wrong: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    which = (items[:, None] == LISTS).all(axis=2).argmax(axis=1)
    places = np.arange(M)
    return (
        (TARGET / LOGGED)[which] * wrong,
        cells_of(TARGET)[items, places] / cells_of(LOGGED)[items, places] * wrong,
    )


V = np.array([1.0, 0.6])


@pytest.mark.parametrize("model", [PBM, CASCADE], ids=["position-based", "cascade"])
def test_ips_is_unbiased_whatever_makes_users_click(model: ClickModel) -> None:
    items, clicks, chance = world(model)
    value = chance @ off_policy.ips(weights(items)[0], clicks, np.broadcast_to(V, items.shape))
    assert value == pytest.approx(truth(model, V), abs=1e-12)


def test_item_position_is_unbiased_where_positions_are_all_that_matters() -> None:
    items, clicks, chance = world(PBM)
    v = np.broadcast_to(V, items.shape)
    assert chance @ off_policy.item_position(weights(items)[1], clicks, v) == pytest.approx(truth(PBM, V))
    items, clicks, chance = world(CASCADE)
    biased = chance @ off_policy.item_position(weights(items)[1], clicks, v)
    assert abs(biased - truth(CASCADE, V)) > 0.01


def test_doubly_robust_is_unbiased_if_either_half_is_right() -> None:
    items, clicks, chance = world(PBM)
    v = np.broadcast_to(V, items.shape)
    right = PBM.attraction[:, None] * PBM.examination
    for q, wrong in (
        (np.full((N, M), 0.3), 1.0),
        (np.random.default_rng(1).random((N, M)), 1.0),
        (right, 1.7),
    ):
        q_policy = np.broadcast_to((cells_of(TARGET) * q).sum(axis=0), items.shape)
        w = weights(items, wrong)[1]
        value = chance @ off_policy.doubly_robust(w, clicks, v, q[items, np.arange(M)], q_policy)
        assert value == pytest.approx(truth(PBM, V), abs=1e-12)
    both_wrong = chance @ off_policy.doubly_robust(
        weights(items, 1.7)[1], clicks, v, np.full(items.shape, 0.3), np.full(items.shape, 0.3)
    )
    assert abs(both_wrong - truth(PBM, V)) > 0.01


def test_switch_is_between_doubly_robust_and_the_guess_and_says_its_bias() -> None:
    items, clicks, chance = world(PBM)
    v = np.broadcast_to(V, items.shape)
    right, w = PBM.attraction[:, None] * PBM.examination, weights(items)[1]
    guesses = np.full((N, M), 0.3), right
    for q in guesses:
        q_policy = np.broadcast_to((cells_of(TARGET) * q).sum(axis=0), items.shape)
        parts = (w, clicks, v, q[items, np.arange(M)], q_policy)
        np.testing.assert_array_equal(
            off_policy.switch(*parts, threshold=np.inf), off_policy.doubly_robust(*parts)
        )
        for threshold in (0.5, 1.2, 2.0):
            off = chance @ off_policy.switch(*parts, threshold=threshold) - truth(PBM, V)
            # Over all that can happen, the largest bias is that of a guess which is off by 1 on what is clipped.
            most = chance @ (v * np.where(w > threshold, w, 0.0)).sum(axis=1)
            assert abs(off) <= most + 1e-12
            assert (abs(off) < 1e-12) == (q is right or most == 0.0)


def test_switch_clips_what_is_rare_and_its_interval_has_the_bias() -> None:
    rng = np.random.default_rng(4)
    which = rng.choice(len(LISTS), 3_000, p=LOGGED)
    log = LoggedLists(
        items=LISTS[which],
        clicks=PBM.click(LISTS[which], rng=rng),
        propensities=cells_of(LOGGED)[LISTS[which], np.arange(M)],
    )
    plain = logs.evaluate(log, cells_of(TARGET), estimator="doubly-robust")
    loose = logs.evaluate(log, cells_of(TARGET), estimator="switch", threshold=100.0)
    assert (loose.value, loose.bias) == (plain.value, 0.0)
    with pytest.warns(logs.PropensityWarning, match="75% of what the policy shows .* is left to the guess"):
        tight = logs.evaluate(log, cells_of(TARGET), estimator="switch", threshold=1.0)
    assert tight.standard_error < plain.standard_error
    assert tight.bias > 0.0
    assert tight.high - tight.value == pytest.approx(1.959964 * tight.standard_error + tight.bias)
    chosen = logs.evaluate(log, cells_of(TARGET), estimator="switch")
    assert chosen.standard_error**2 + chosen.bias**2 <= plain.standard_error**2 * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="threshold is for estimator 'switch', got it with 'ips'"):
        logs.evaluate(log, cells_of(TARGET), estimator="ips", threshold=1.0)
    with pytest.raises(ValueError, match="threshold must be"):
        logs.evaluate(log, cells_of(TARGET), estimator="switch", threshold=0.0)


def test_the_guess_from_the_other_half_leaves_doubly_robust_unbiased() -> None:
    """Every log of two rows: 24 x 24 of them."""
    items, clicks, chance = world(PBM)
    propensities = cells_of(LOGGED)[items, np.arange(M)]
    expected = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two rows do have strange weights
        for a, b in itertools.product(range(len(items)), repeat=2):
            pair = [a, b]
            log = LoggedLists(
                items=items[pair],
                clicks=clicks[pair],
                propensities=propensities[pair],
                item_ids=("a", "b", "c"),
            )
            try:
                value = logs.evaluate(log, cells_of(TARGET), least_effective=0, click_values=V).value
            except logs.TooFewSamples:
                value = _by_hand(log)
            expected += chance[a] * chance[b] * value
    assert expected == pytest.approx(truth(PBM, V), abs=1e-10)


def _by_hand(log: LoggedLists) -> float:
    """The same where all weights are zero, which `evaluate` refuses: nothing but the guesses is left."""
    from rankloop.logs.off_policy import ItemPolicy, applied, guesses_for

    q_shown, q_policy = applied(guesses_for(None, log), log, ItemPolicy(cells_of(TARGET), None))
    w = cells_of(TARGET)[log.items, log.positions] / log.propensities
    v = np.broadcast_to(V, log.items.shape)
    return float(off_policy.doubly_robust(w, log.clicks, v, q_shown, q_policy).mean())


def exact_log(model: ClickModel, n: int = 100_000) -> LoggedLists:
    """A log in which everything happens as often as it should."""
    items, clicks, chance = world(model)
    times = np.round(chance * n).astype(int)
    assert np.abs(times - chance * n).max() < 1e-6
    return LoggedLists(
        items=np.repeat(items, times, axis=0),
        clicks=np.repeat(clicks, times, axis=0),
        propensities=np.repeat(cells_of(LOGGED)[items, np.arange(M)], times, axis=0),
        list_propensities=np.repeat(np.repeat(LOGGED, len(CLICKS)), times),
        item_ids=("a", "b", "c"),
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_on_a_log_without_luck_every_estimator_tells_the_truth(estimator: str) -> None:
    log = exact_log(PBM)
    policies: list[tuple[Any, float]] = [
        ([1, 2, 0], float(PBM.click_probabilities([1, 2]) @ V)),
        (rankers.Fixed(order=[2, 0, 1]), float(PBM.click_probabilities([2, 0]) @ V)),
    ]
    if estimator in ("item-position", "doubly-robust"):
        policies.append((cells_of(TARGET), truth(PBM, V)))
    for policy, value in policies:
        found = logs.evaluate(log, policy, estimator=estimator, click_values=V)
        # The guess of doubly robust comes from halves that are not exact, and cancels only on average.
        assert found.value == pytest.approx(value, abs=1e-3 if estimator == "doubly-robust" else 1e-9)
        assert found.low < value < found.high
        assert found.mean_weight == pytest.approx(1.0)


def test_a_ranker_that_draws_is_asked_often() -> None:
    log = exact_log(PBM)
    uniform = float(PBM.click_probabilities(LISTS).sum(axis=1).mean())
    for estimator in ESTIMATORS:
        found = logs.evaluate(log, rankers.Uniform(n_items=3), estimator=estimator, draws=4_000)
        assert found.value == pytest.approx(uniform, abs=0.02)


def test_intervals_hold_the_truth_as_often_as_said_and_doubly_robust_is_the_narrowest() -> None:
    rng = np.random.default_rng(7)
    runs, n = 400, 600
    hits = dict.fromkeys(ESTIMATORS, 0)
    widths = dict.fromkeys(ESTIMATORS, 0.0)
    value = float(PBM.click_probabilities([1, 2]).sum())
    for _ in range(runs):
        which = rng.choice(len(LISTS), n, p=LOGGED)
        items = LISTS[which]
        log = LoggedLists(
            items=items,
            clicks=PBM.click(items, rng=rng),
            propensities=cells_of(LOGGED)[items, np.arange(M)],
            list_propensities=LOGGED[which],
            item_ids=("a", "b", "c"),
        )
        for estimator in ESTIMATORS:
            found = logs.evaluate(log, [1, 2], estimator=estimator, confidence=0.9, least_effective=10)
            hits[estimator] += found.low < value < found.high
            widths[estimator] += found.high - found.low
    for estimator in ESTIMATORS:
        assert abs(hits[estimator] / runs - 0.9) < 4 * np.sqrt(0.09 / runs), hits
    assert widths["doubly-robust"] < widths["item-position"] < widths["ips"]
    assert widths["self-normalised"] < widths["ips"]


def test_effective_size_by_hand() -> None:
    assert off_policy.effective_size(np.ones((7, 1))) == 7
    assert off_policy.effective_size(np.array([[4.0], [0.0], [0.0], [0.0]])) == 1
    assert off_policy.effective_size(np.array([[1.0, 3.0], [1.0, 1.0]])) == pytest.approx(16 / 10)
    assert off_policy.effective_size(np.zeros((3, 1))) == 0


def uniform_log(n: int = 2_000, n_items: int = 8, seed: int = 3) -> LoggedLists:
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)[:, :4]
    model = PositionBasedModel(attraction=np.linspace(0.1, 0.8, n_items), examination=[1, 0.7, 0.4, 0.2])
    lists = 1 / (8 * 7 * 6 * 5)
    return LoggedLists(
        items=items,
        clicks=model.click(items, rng=rng),
        propensities=np.full(items.shape, 1 / n_items),
        list_propensities=np.full(n, lists),
        name="even",
    )


def test_a_log_that_says_nothing_about_a_policy_is_refused_in_words() -> None:
    log = uniform_log()
    for estimator in ("ips", "self-normalised"):
        with pytest.raises(
            logs.TooFewSamples, match=r"effective sample size \d\.\d of 2,000 rows.*'even' rarely shows"
        ):
            logs.evaluate(log, [7, 6, 5, 4], estimator=estimator)
    # Items at positions are shared by many lists, so there the same log does tell.
    found = logs.evaluate(log, [7, 6, 5, 4], estimator="item-position")
    assert found.effective_size > 200
    assert issubclass(logs.TooFewSamples, ValueError)


def test_least_effective_is_the_callers_choice_but_nothing_stays_nothing() -> None:
    log = LoggedLists(items=[[0], [1]], clicks=[[1], [0]], propensities=[[0.5], [0.5]], item_ids=tuple("abc"))
    assert logs.evaluate(log, [0], least_effective=1).n_rows == 2
    with pytest.raises(logs.TooFewSamples, match=r"effective sample size 0\.0"):
        logs.evaluate(log, [2], least_effective=0)


def test_wrong_propensities_are_noticed() -> None:
    log = uniform_log()
    wrong = LoggedLists(items=log.items, clicks=log.clicks, propensities=np.full(log.items.shape, 0.25))
    with pytest.warns(logs.PropensityWarning, match=r"weights average 0\.\d+ instead of 1"):
        logs.evaluate(wrong, rankers.Uniform(n_items=8), estimator="item-position")


def test_rows_may_be_parts_of_lists() -> None:
    """Single impressions at known positions: the value is that of an impression, positions as often as they came."""
    log = uniform_log(20_000)
    parts = LoggedLists(
        items=log.items.reshape(-1, 1),
        clicks=log.clicks.reshape(-1, 1),
        positions=log.positions.reshape(-1, 1),
        propensities=np.full((log.items.size, 1), 1 / 8),
    )
    whole = logs.evaluate(log, [7, 6, 5, 4], estimator="item-position")
    for estimator in ("ips", "item-position"):
        assert logs.evaluate(parts, [7, 6, 5, 4], estimator=estimator).value == pytest.approx(whole.value / 4)
    assert logs.evaluate(parts, [7, 6, 5, 4], estimator="self-normalised").value == pytest.approx(
        whole.value / 4, rel=0.05
    )


def test_what_was_logged_is_worth_what_it_earned() -> None:
    log = uniform_log()
    found = logs.on_policy(log)
    assert found.value == log.clicks.sum(axis=1).mean()
    again = logs.evaluate(log, np.full((8, 4), 1 / 8), estimator="item-position")
    assert again.value == pytest.approx(found.value)
    assert again.effective_size == pytest.approx(2_000)
    shares = log.shares()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert np.abs(shares - 1 / 8).max() < 0.03


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"estimator": "magic"}, "estimator must be one of 'ips'"),
        ({"confidence": 0}, "confidence must be a finite number above 0 and below 1, got 0"),
        ({"least_effective": -1}, "least_effective must be 0 or more, got -1"),
        ({"policy": [0, 1]}, "policy must rank at least 4 different items"),
        ({"policy": [0, 1, 2, 2]}, "policy must rank at least 4 different items"),
        ({"policy": [0, 1, 2, 8]}, "policy must rank items from 0 to 7"),
        ({"policy": [0, 1, 2, 0.5]}, "policy must rank"),
        ({"policy": np.ones((3, 4))}, "policy must have a row for each item"),
        ({"policy": np.ones((8, 4))}, "policy must be probabilities that sum to 1"),
        ({"policy": "best"}, "policy must be numbers"),
        ({"policy": np.ones((1, 1, 1))}, "policy must be a ranker, a ranking or a matrix"),
        ({"policy": rankers.Uniform(n_items=3)}, "policy must be a ranker of the log's 4 positions"),
        ({"policy": rankers.Uniform(n_items=30)}, "policy must rank items from 0 to 7"),
        ({"policy": np.full((8, 4), 1 / 8), "estimator": "ips"}, "estimator 'ips' needs list_propensities"),
        ({"click_values": [1.0]}, "click_values must be 4 numbers"),
        ({"click_rates": [[1.0]]}, "click_rates must be items by positions"),
        (
            {"click_rates": np.ones((8, 4)), "estimator": "ips"},
            "click_rates are for estimator 'doubly-robust'",
        ),
        ({"policy": rankers.Uniform(n_items=8), "draws": 0}, "draws must be a whole number"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        logs.evaluate(uniform_log(), **({"policy": [7, 6, 5, 4]} | arguments))


def test_an_estimator_needs_its_propensities() -> None:
    bare = LoggedLists(items=[[0, 1]], clicks=[[0, 0]])
    with pytest.raises(ValueError, match="needs propensities of items at positions"):
        logs.evaluate(bare, [0, 1])
    with pytest.raises(ValueError, match="'ips' needs list_propensities"):
        logs.evaluate(bare, [0, 1], estimator="ips")


@pytest.mark.parametrize("campaign", ["men", "women"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_thompson_sampling_from_the_log_of_chance(campaign: str, estimator: str) -> None:
    try:
        random = data.read_logged_lists(data.find(f"clicks/obd/random/{campaign}/{campaign}.csv.gz"))
        thompson = data.read_logged_lists(
            data.find(f"clicks/obd/bts/{campaign}/{campaign}.csv.gz"), item_ids=random.item_ids
        )
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    found = logs.evaluate(random, thompson.shares(), estimator=estimator)
    assert found.low < logs.on_policy(thompson).value < found.high
    assert 2_500 < found.effective_size < 4_000
    if campaign == "women":  # the other way round, a few rows with tiny propensities outweigh all others
        with pytest.raises(logs.TooFewSamples):
            logs.evaluate(thompson, np.full((46, 3), 1 / 46), estimator=estimator)
