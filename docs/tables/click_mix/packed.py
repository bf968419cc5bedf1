"""The packaged ranker as the prototype's module: same harness."""
import numpy as np
from rankloop.rankers import click_mix
from rankloop import rankers
import os
rank, learn = click_mix.rank, click_mix.learn
R = {}
def make(n, m, **kw):
    r = rankers.ClickMix(n_items=n, n_positions=m, **kw); R["r"] = r
    return r.params, r.state, r.scratch(m)
def carry(st, i, n):
    old = R["r"]; new = type(old)(**old.get_params()); origin = np.arange(n); origin[i] = -1
    new.carry(old, origin)
    for a, b in zip(st, new.state): a[...] = b
