"""The users of section 10 of the 2015 paper."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.experiments.top1_2015 import setting


@pytest.mark.parametrize(("noise", "flipped"), [(0.25, 0.0228), (0.5, 0.1587), (1.0, 0.3085)])
def test_the_users_disagree_as_often_as_the_noise_says(noise: float, flipped: float) -> None:
    people = setting.users(20_000, noise)
    disagree = np.abs(people - np.repeat([1, 0], 5)).mean()
    assert disagree == pytest.approx(flipped, abs=0.003)  # three standard errors at noise 1


def test_a_shorter_run_meets_the_first_of_the_same_users() -> None:
    assert (setting.users(100, 0.25) == setting.users(200, 0.25)[:100]).all()
