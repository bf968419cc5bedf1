"""Interleaving and multileaving, by enumeration: which lists are shown how often, and what a click is worth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop.feedback.interleaving import (
    Multileaved,
    Multileaving,
    PairwisePreference,
    Probabilistic,
    TeamDraft,
)

TWO = [[0, 1, 2, 3], [1, 3, 0, 2]]
THREE = [*TWO, [3, 2, 1, 0]]
ROTATED = [[0, 1, 2, 3], [1, 2, 3, 0]]  # balanced interleaving prefers the second under random clicks
LACKING = [[10, 4, 7], [7, 12, 4]]  # top lists of more items, which do not hold the same
METHODS: list[Multileaving] = [
    TeamDraft(),
    Probabilistic(),
    Probabilistic(tau=1.0),
    PairwisePreference(),
]
CASES = [(TWO, 3), (THREE, 2), (THREE, 4), (ROTATED, 4), (LACKING, 3)]


def by_assignments(rankings: Any, m: int, tau: float) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """P(list, ranker i was drawn at position j), summed over every sequence of drawn rankers."""
    items = sorted({item for ranking in rankings for item in ranking})
    weight = [
        {item: (list(r).index(item) + 1 if item in r else len(r) + 1) ** -tau for item in items}
        for r in rankings
    ]
    joint: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for shown in itertools.permutations(items, m):
        joint[shown] = np.zeros((len(rankings), m))
        for drawn in itertools.product(range(len(rankings)), repeat=m):
            chance = 1.0
            for position, ranker in enumerate(drawn):
                left = [weight[ranker][item] for item in items if item not in shown[:position]]
                chance *= weight[ranker][shown[position]] / sum(left) / len(rankings)
            for position, ranker in enumerate(drawn):
                joint[shown][ranker, position] += chance
    return joint


def by_turns(rankings: Any, m: int) -> dict[tuple[int, ...], float]:
    """Every sequence of captains that team draft may draw, all equally likely."""
    n, chances = len(rankings), {}
    rounds = list(itertools.product(itertools.permutations(range(n)), repeat=-(-m // n)))
    for turns in rounds:
        shown: list[int] = []
        for captain in list(itertools.chain(*turns))[:m]:
            shown.append(next(item for item in rankings[captain] if item not in shown))
        chances[tuple(shown)] = chances.get(tuple(shown), 0.0) + 1 / len(rounds)
    return chances


def by_pairs(rankings: Any, m: int) -> dict[tuple[int, ...], tuple[float, NDArray[np.float64]]]:
    """Every list of pairwise preference multileaving, by its definition: its probability, and what pairs are worth."""
    items = sorted({item for ranking in rankings for item in ranking})
    rank = [[list(r).index(i) + 1 if i in r else len(r) + 1 for i in items] for r in rankings]
    top = {item: min(of[i] for of in rank) for i, item in enumerate(items)}
    found = {}
    for shown in itertools.permutations(items, m):
        sizes = []
        for k, item in enumerate(shown):
            left = {one for one in items if top[one] <= k + 1} - set(shown[:k])
            if item not in left:
                break
            sizes.append(len(left))
        if len(sizes) < m:
            continue
        worth = np.zeros((len(rankings), m, m))
        for i, j in itertools.permutations(range(m), 2):
            both, first = max(top[shown[i]], top[shown[j]]), min(top[shown[i]], top[shown[j]])
            if min(i, j) + 1 >= both:
                chance = float(np.prod([1 - 1 / sizes[x - 1] for x in range(first, both)]))
                for n, of in enumerate(rank):
                    worth[n, i, j] = np.sign(of[items.index(shown[j])] - of[items.index(shown[i])]) / chance
        found[shown] = float(np.prod([1 / size for size in sizes])), worth
    return found


def expected(method: Multileaving, rankings: Any, m: int, clicked: Any) -> NDArray[np.float64]:
    """The mean credit of each ranker, where `clicked(items)` gives the probability of a click by position."""
    if isinstance(method, Probabilistic):
        joint = by_assignments(rankings, m, method.tau)
        return sum(table @ clicked(np.array(items)) for items, table in joint.items())
    if isinstance(method, PairwisePreference):
        total = np.zeros(len(rankings))
        for items, (chance, worth) in by_pairs(rankings, m).items():
            liked = clicked(np.array(items))
            for clicks in itertools.product((0, 1), repeat=m):
                sure = chance * np.prod(np.where(clicks, liked, 1 - liked))
                last = max((i for i in range(m) if clicks[i]), default=-1)
                for i, j in itertools.product(range(m), range(min(last + 2, m))):
                    total += sure * worth[:, i, j] * (clicks[i] > clicks[j])
        return total
    # Team draft: the credit of a position goes to the captain of the turn.
    n = len(rankings)
    rounds = list(itertools.product(itertools.permutations(range(n)), repeat=-(-m // n)))
    total = np.zeros(n)
    for turns in rounds:
        captains = list(itertools.chain(*turns))[:m]
        shown: list[int] = []
        for captain in captains:
            shown.append(next(item for item in rankings[captain] if item not in shown))
        np.add.at(total, captains, clicked(np.array(shown)) / len(rounds))
    return total


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize(("rankings", "m"), CASES)
def test_draws_follow_the_exact_probabilities(method: Multileaving, rankings: Any, m: int) -> None:
    lists, probabilities = method.distribution(rankings, n_positions=m)
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    rng = np.random.default_rng(5)
    draws = 400
    place = {tuple(items): i for i, items in enumerate(lists.tolist())}
    counts = np.zeros(len(lists))
    for _ in range(draws):
        counts[place[tuple(method.show(rankings, n_positions=m, rng=rng).items.tolist())]] += 1
    assert (counts[probabilities == 0] == 0).all()
    deviation = np.sqrt(draws * probabilities * (1 - probabilities))
    assert (np.abs(counts - draws * probabilities) <= 5 * deviation + 1).all()


@pytest.mark.parametrize(("rankings", "m"), CASES)
def test_team_draft_is_a_sequence_of_turns(rankings: Any, m: int) -> None:
    lists, probabilities = TeamDraft().distribution(rankings, n_positions=m)
    wanted = by_turns(rankings, m)
    assert [tuple(items) for items in lists.tolist()] == sorted(wanted)
    np.testing.assert_allclose(probabilities, [wanted[items] for items in sorted(wanted)], atol=1e-12)
    shown = TeamDraft(prefix_credit=True).show(rankings, n_positions=m, rng=np.random.default_rng(2))
    assert shown.credits.sum(axis=0).tolist() == [1.0] * m
    rounds = shown.credits[:, : m - m % len(rankings)].reshape(len(rankings), -1, len(rankings))
    assert (rounds.sum(axis=2) == 1).all()  # each ranker once a round


def test_team_draft_gives_no_credit_where_all_rankings_agree() -> None:
    rankings = [[4, 2, 0, 1, 3], [4, 2, 1, 3, 0], [4, 2, 3, 0, 1]]
    for seed in range(20):
        shown = TeamDraft().show(rankings, rng=np.random.default_rng(seed))
        whole = TeamDraft(prefix_credit=True).show(rankings, rng=np.random.default_rng(seed))
        assert shown.items.tolist() == whole.items.tolist()
        assert shown.items[:2].tolist() == [4, 2]
        assert not shown.credits[:, :2].any()
        np.testing.assert_array_equal(shown.credits[:, 2:], whole.credits[:, 2:])
    same = TeamDraft().show([[1, 0], [1, 0]], rng=np.random.default_rng(1))
    assert not same.credits.any()  # of a ranking against itself nothing is learnt


@pytest.mark.parametrize(("rankings", "m"), CASES)
def test_pairs_count_by_their_definition(rankings: Any, m: int) -> None:
    method, wanted = PairwisePreference(), by_pairs(rankings, m)
    lists, probabilities = method.distribution(rankings, n_positions=m)
    assert [tuple(items) for items in lists.tolist()] == sorted(wanted)
    np.testing.assert_allclose(probabilities, [wanted[items][0] for items in sorted(wanted)], rtol=1e-12)
    for seed in range(20):
        shown = method.show(rankings, n_positions=m, rng=np.random.default_rng(seed))
        np.testing.assert_allclose(shown.credits, wanted[tuple(shown.items.tolist())][1], rtol=1e-9)
    top = [set(ranking[: i + 1]) for i in range(m) for ranking in rankings]
    for (
        items
    ) in lists.tolist():  # considerate: every item stands where some ranking would have had it by then
        assert all(
            any(item in seen for seen in top[: (i + 1) * len(rankings)]) for i, item in enumerate(items)
        )


def test_pairs_are_faithful_where_one_ranking_is_better_everywhere() -> None:
    """By enumeration: whoever has every relevant item at least as high, and one higher, gets more."""
    for order in itertools.permutations(range(4)):
        for liked in itertools.product((0.1, 0.8), repeat=4):
            better = sorted(range(4), key=lambda item: (-liked[item], order.index(item)))
            if [liked[item] for item in order] == [liked[item] for item in better]:
                continue
            relevant = np.array(liked)
            credit = expected(PairwisePreference(), [better, list(order)], 4, relevant.__getitem__)
            assert credit[0] > credit[1] + 1e-6


@pytest.mark.parametrize("tau", [1.0, 3.0])
@pytest.mark.parametrize(("rankings", "m"), [(TWO, 3), (THREE, 2), (LACKING, 3)])
def test_probabilistic_credit_averages_over_the_drawn_rankers(rankings: Any, m: int, tau: float) -> None:
    method = Probabilistic(tau=tau)
    joint = by_assignments(rankings, m, tau)
    lists, probabilities = method.distribution(rankings, n_positions=m)
    chance = {items: table[:, 0].sum() for items, table in joint.items()}
    assert [tuple(items) for items in lists.tolist()] == sorted(chance)
    np.testing.assert_allclose(probabilities, [chance[items] for items in sorted(chance)], rtol=1e-12)
    rng = np.random.default_rng(3)
    for _ in range(30):
        shown = method.show(rankings, n_positions=m, rng=rng)
        items = tuple(shown.items.tolist())
        np.testing.assert_allclose(shown.credits, joint[items] / chance[items], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize(("rankings", "m"), CASES)
def test_random_clicks_prefer_nobody(method: Multileaving, rankings: Any, m: int) -> None:
    by_position = np.array([0.9, 0.3, 0.5, 0.1])[:m]
    credit = expected(method, rankings, m, lambda items: by_position)
    np.testing.assert_allclose(credit, credit[0], atol=1e-8)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_two_of_the_same_get_the_same_whatever_is_clicked(method: Multileaving) -> None:
    relevant = np.array([0.1, 0.8, 0.0, 0.4])
    credit = expected(method, [TWO[0], TWO[1], TWO[0]], 3, lambda items: relevant[items])
    assert credit[0] == pytest.approx(credit[2], abs=1e-12)
    assert credit[0] != pytest.approx(credit[1], abs=1e-3)
    if isinstance(method, TeamDraft):
        return  # equal in expectation only
    shown = method.show([TWO[0], TWO[1], TWO[0]], n_positions=3, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(shown.credits[0], shown.credits[2])


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_better_ranker_wins_under_clicks_on_relevant_items(method: Multileaving, m: int) -> None:
    # Items 0 and 1 are relevant: the first ranking has both before everything else, the last has them at the end.
    rankings = [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]]
    credit = expected(method, rankings, m, lambda items: np.where(items < 2, 0.9, 0.0))
    assert credit[0] > credit[1] + 0.01
    if isinstance(method, TeamDraft):
        assert credit[1] == pytest.approx(credit[2])  # it is blind to this pair, see below
    else:
        assert credit[1] > credit[2] + 0.01


def test_team_draft_cannot_tell_some_rankers_apart_that_others_can() -> None:
    # Only item 2 is relevant, and the second ranking has it higher. In both lists it ends up last, added by either.
    rankings = [[0, 1, 2], [1, 2, 0]]

    def clicked(items: NDArray[np.int64]) -> NDArray[np.float64]:
        return (items == 2).astype(np.float64)

    blind = expected(TeamDraft(), rankings, 3, clicked)
    assert blind[0] == pytest.approx(blind[1])
    for method in METHODS[1:]:
        credit = expected(method, rankings, 3, clicked)
        assert credit[1] > credit[0] + 0.01, method


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_list_is_saved_and_gives_the_same_credit(method: Multileaving, tmp_path: Any) -> None:
    shown = method.show(THREE, n_positions=3, rng=np.random.default_rng(7))
    np.savez(tmp_path / "shown.npz", **shown.save())
    with np.load(tmp_path / "shown.npz") as saved:
        again = Multileaved.load(saved)
    np.testing.assert_array_equal(again.items, shown.items)
    np.testing.assert_array_equal(again.credit([1, 0, 1]), shown.credit([1, 0, 1]))
    credit = shown.credit([1, 0, 1])
    signs = shown.preferences([1, 0, 1])
    assert (signs == -signs.T).all()
    assert all(signs[i, j] == np.sign(credit[i] - credit[j]) for i in range(3) for j in range(3))
    assert shown.credit([0, 0, 0]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", [TeamDraft(), Probabilistic(), PairwisePreference()], ids=repr)
@pytest.mark.parametrize(
    ("rankings", "n_positions", "message"),
    [
        ([], None, "rankings must hold at least one ranking"),
        ("abc", None, "rankings must be a list of rankings, got 'abc'"),
        (3, None, "rankings must be a list of rankings, got 3"),
        ([[0, 1], [1, 1]], None, r"rankings\[1\] must not hold an item twice, got \[1, 1\]"),
        ([[0, 1], []], None, r"rankings\[1\] must be a list of item numbers, best first, got \[\]"),
        ([[0, -1]], None, r"rankings\[0\] must hold whole numbers from 0 on, got \[0, -1\]"),
        ([[0, 0.5]], None, r"rankings\[0\] must hold whole numbers from 0 on"),
        ([[0, 1], [1, 0, 2]], 3, "n_positions must be .*2.*got 3"),
        ([[0, 1]], 0, "n_positions must be .*got 0"),
    ],
)
def test_wrong_rankings_are_refused(
    method: Multileaving, rankings: Any, n_positions: Any, message: str
) -> None:
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match=message):
        method.show(rankings, n_positions=n_positions, rng=rng)
    with pytest.raises(ValueError, match=message):
        method.distribution(rankings, n_positions=n_positions)
    assert rng.bit_generator.state == before


def test_wrong_arguments_clicks_and_saved_lists_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tau must be .*got 0"):
        Probabilistic(tau=0)
    with pytest.raises(ValueError, match=r"tau must be .*got 31"):
        Probabilistic(tau=31)
    with pytest.raises(ValueError, match="enumerates at most 1,000,000 lists"):
        Probabilistic().distribution([list(range(20))] * 2)
    with pytest.raises(ValueError, match="enumerates at most 1,000,000 lists"):
        TeamDraft().distribution([list(range(60))] * 2)
    with pytest.raises(ValueError, match="enumerates at most 1,000,000 lists"):
        PairwisePreference().distribution([list(range(20)), list(range(19, -1, -1))])
    with pytest.raises(ValueError, match="prefix_credit must be True or False, got 'no'"):
        TeamDraft(prefix_credit="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rng must be a generator"):
        TeamDraft().show(TWO, rng=1)  # type: ignore[arg-type]
    shown = TeamDraft().show(TWO, rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="feedback must be 0"):
        shown.credit([0, 0, 2, 0])
    with pytest.raises(ValueError, match=r"feedback has shape \(2,\)"):
        shown.credit([0, 1])
    with pytest.raises(ValueError, match="saved list has no 'credits'"):
        Multileaved.load({"items": shown.items})
    with pytest.raises(ValueError, match="credits must be finite, rankers x 4 positions"):
        Multileaved.load({"items": shown.items, "credits": np.ones((2, 3))})


def test_the_steepest_weights_are_still_numbers() -> None:
    method = Probabilistic(tau=30.0)
    shown = method.show([list(range(2000)), list(range(1999, -1, -1))], rng=np.random.default_rng(1))
    assert sorted(shown.items.tolist()) == list(range(2000))
    assert np.isfinite(shown.credits).all()
    np.testing.assert_allclose(shown.credits.sum(axis=0), 1.0)
