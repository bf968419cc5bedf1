"""The users of a world, as numba kernels that take a plain tuple."""
import numpy as np
from typing import NamedTuple
from numba import njit
from rankloop.environments.click_users import Tables, best_of_world, draw_clicks, expected_clicks
from rankloop.kernels.random import uniform
from rankloop.environments import click_users

class Env(NamedTuple):
    kind: int
    P: np.ndarray
    V: np.ndarray
    ref: np.ndarray
    sched: np.ndarray
    browsing: Tables
    rows: np.ndarray
    best: float
    fake: float
    promoted: int
    victim: np.ndarray
    budget: int
    key: np.uint64
    last: np.ndarray
    spent: np.ndarray
    full: np.ndarray

def build(w, seed):
    key = np.uint64(np.random.SeedSequence([29, seed]).generate_state(1, np.uint64)[0])
    if w.P is not None:
        sched = w.sched
        if sched is None:
            sched = np.random.default_rng([7, seed]).choice(len(w.probs), size=w.T, p=w.probs).astype(np.int32)
        m, n = w.P.shape[1:]
        z = Tables(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1)))
        return Env(0, w.P, w.V, w.ref, np.ascontiguousarray(sched, np.int32), z, np.arange(n), 0., 0., 0, np.zeros(n, np.bool_), 0, key, np.zeros(m + 1), np.zeros(1, np.int64), np.zeros(m))
    t = w.model.browsing(w.m)
    best, _ = best_of_world(t)
    tb = Tables(*(np.ascontiguousarray(p[None]) for p in t))
    v = np.zeros(w.n, np.bool_); v[list(w.victims)] = True
    return Env(1, np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros(1), np.zeros(1, np.int32), tb, np.arange(w.n), best, w.fake, w.promoted, v, w.budget, key, np.zeros(w.m + 1), np.zeros(1, np.int64), np.zeros(w.m))

@njit(error_model="numpy")
def user(e, t, items, clicks):
    """(value, reference) of the list in round t; writes the clicks that are observed."""
    m = len(items)
    key = e.key ^ (np.uint64(t + 1) * np.uint64(0xD1342543DE82EF95))
    if e.kind == 0:
        w = e.sched[t]; v = 0.0
        for j in range(m):
            clicks[j] = 1.0 if uniform(key, j) < e.P[w, j, items[j]] else 0.0
            v += e.V[w, j, items[j]]
        return v, e.ref[w]
    if uniform(key, 1000) < e.fake:
        for j in range(m): clicks[j] = 1.0 if items[j] == e.promoted else 0.0
        return 0.0, 0.0
    here = Tables(e.browsing.attraction[0], e.browsing.examination[0], e.browsing.after_click[0], e.browsing.after_none[0])
    draw_clicks(here, e.rows, 0, items, m, key, clicks)
    if e.spent[0] < e.budget:
        hit = False
        for j in range(m): hit |= clicks[j] > 0 and e.victim[items[j]]
        if hit:
            e.spent[0] += 1
            for j in range(m): clicks[j] = 1.0 if items[j] == e.promoted else 0.0
    return expected_clicks(e, 0, items, e.last), e.best

def random_regret(w, seed=0, rounds=20000):
    e = build(w, seed)
    if w.P is not None:
        per = w.ref - w.V.mean(axis=2).sum(axis=1)
        return per[e.sched[:w.T]].sum()
    rng = np.random.default_rng(5); clicks = np.empty(w.m); tot = 0.
    for t in range(rounds):
        it = rng.permutation(w.n)[:w.m].astype(np.int64)
        v, r = user(e, t, it, clicks); tot += r - v
    return tot / rounds * w.T

def make_loop(rank, learn):
    @njit(error_model="numpy")
    def loop(e, start, end, params, state, scratch, items, prop, memo, clicks, words, curve):
        reg = 0.0
        for t in range(start, end):
            rank(params, state, None, words[t], scratch, items, prop, memo)
            v, r = user(e, t, items, clicks)
            reg += r - v
            curve[t] = r - v
            learn(params, state, None, scratch, items, prop, memo, clicks)
        return reg
    return loop
