"""Requests and answers of the Personalizer API, as the types that check them. Fields that are not named are ignored."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rankloop.serving.schemas import ItemName

Name = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=256)]


class Action(msgspec.Struct, frozen=True, rename="camel"):
    """Something that can be shown."""

    id: ItemName
    features: list[Any] | None = None


class Slot(msgspec.Struct, frozen=True, rename="camel"):
    """A place that shows one action."""

    id: Name
    features: list[Any] | None = None
    excluded_actions: list[str] | None = None
    baseline_action: str | None = None


class RankBody(msgspec.Struct, frozen=True, rename="camel"):
    """A request to choose one action."""

    actions: Annotated[list[Action], Meta(min_length=1)]
    context_features: list[Any] | None = None
    excluded_actions: list[str] | None = None
    event_id: Name | None = None
    defer_activation: bool = False


class SlotsBody(msgspec.Struct, frozen=True, rename="camel"):
    """A request to choose an action for each of several slots."""

    actions: Annotated[list[Action], Meta(min_length=1)]
    slots: Annotated[list[Slot], Meta(min_length=1, max_length=100)]
    context_features: list[Any] | None = None
    event_id: Name | None = None
    defer_activation: bool = False


Reward = Annotated[float, Meta(ge=-1.0, le=1.0)]


class RewardBody(msgspec.Struct, frozen=True, rename="camel"):
    """What the chosen action was worth."""

    value: Reward


class SlotReward(msgspec.Struct, frozen=True, rename="camel"):
    """What the action in one slot was worth."""

    slot_id: Name
    value: Reward


class SlotRewardsBody(msgspec.Struct, frozen=True, rename="camel"):
    """What the actions in some slots were worth."""

    reward: Annotated[list[SlotReward], Meta(min_length=1)]


class RankedAction(msgspec.Struct, frozen=True, rename="camel"):
    """An action at its place. `probability`: that it is chosen, where the ranker knows it."""

    id: str
    probability: float | None


class RankReply(msgspec.Struct, frozen=True, rename="camel"):
    """The chosen action, and the order of all. Excluded actions stay where they were in the request."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class SlotReply(msgspec.Struct, frozen=True, rename="camel"):
    """The action of one slot."""

    id: str
    reward_action_id: str


class SlotsReply(msgspec.Struct, frozen=True, rename="camel"):
    """The actions of all slots."""

    slots: list[SlotReply]
    event_id: str
