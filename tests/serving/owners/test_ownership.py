"""Who owns a ranker: computed alike by all replicas, and moved no more than needed."""

from __future__ import annotations

from collections import Counter

import pytest

from rankloop.serving.owners.address import check_address, own_address
from rankloop.serving.owners.ownership import Ownership
from rankloop.serving.owners.rendezvous import by_preference
from rankloop.serving.stores.contract import Member, Roll
from tests.serving.service import Clock

NAMES = [f"ranker {i}" for i in range(3_000)]
REPLICAS = ["a", "b", "c"]
MEMBERS = [Member(f"made at {name}", name) for name in REPLICAS]


def seen(replica: str, clock: Clock | None = None) -> Ownership:
    found = Ownership(f"made at {replica}", replica, seconds=5.0, steady=clock or Clock())
    found.see(Roll(1, MEMBERS))
    return found


def test_every_replica_gets_its_share() -> None:
    shares = Counter(by_preference(name, REPLICAS)[0] for name in NAMES)
    # 1,000 each in the mean; five standard deviations of a fair draw are 129.
    assert all(abs(shares[replica] - 1_000) < 129 for replica in REPLICAS), shares


def test_only_what_a_lost_replica_had_moves() -> None:
    for name in NAMES:
        owner, standby, third = by_preference(name, REPLICAS)
        left = by_preference(name, [one for one in REPLICAS if one != owner])
        assert left == [standby, third]
        assert by_preference(name, [owner, third])[0] == owner


def test_all_replicas_agree_and_two_of_them_fold() -> None:
    views = [seen(replica) for replica in REPLICAS]
    for name in NAMES[:200]:
        assert len({view.owner(name) for view in views}) == 1
        assert sum(view.owns(name) for view in views) == 1
        assert sum(view.folds(name) for view in views) == 2


def test_one_that_does_not_answer_is_left_alone_for_a_lease() -> None:
    clock = Clock()
    view = seen("a", clock)
    name = next(name for name in NAMES if by_preference(name, REPLICAS) == ["b", "c", "a"])
    assert view.owner(name).address == "b"
    view.did_not_answer("b")
    assert [one.address for one in view.places(name)] == ["c", "a"]
    view.did_not_answer("c")
    assert view.owns(name)
    clock.seconds += 4.9
    view.look()
    assert view.owns(name)
    clock.seconds += 0.2
    view.look()
    assert view.owner(name).address == "b"


def test_an_adopted_ranker_is_kept_for_a_while() -> None:
    clock = Clock()
    view = seen("a", clock)
    name = next(name for name in NAMES if by_preference(name, REPLICAS)[2] == "a")
    assert not view.folds(name)
    view.adopt(name)
    assert view.folds(name)
    assert not view.owns(name)
    clock.seconds += 10.0
    assert not view.folds(name)


def test_what_is_foreseen_is_what_comes() -> None:
    view = Ownership("made at b", "b", seconds=5.0)
    view.foresee([MEMBERS[0], MEMBERS[2]])
    assert view.members == MEMBERS
    assert not view.see(Roll(7, MEMBERS))


def test_one_that_starts_again_gets_back_what_it_had() -> None:
    view, again = seen("a"), Ownership("started again", "a", seconds=5.0, steady=Clock())
    members = [*MEMBERS, Member("started again", "a")]  # its first lease has not run out yet
    for one in (view, again):
        one.see(Roll(2, members))
    for name in NAMES[:200]:
        assert again.owner(name).address == view.owner(name).address == seen("b").owner(name).address
        assert again.owns(name) == seen("a").owns(name)


def test_addresses() -> None:
    assert own_address("0.0.0.0", 80).startswith("http://")
    check_address("https://ranker.example:8443")
    for wrong in ("ranker:8000", "ftp://ranker", "http://ranker/v1", "http://"):
        with pytest.raises(ValueError, match="advertise must be"):
            check_address(wrong)
