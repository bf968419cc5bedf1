"""Library rankers in all worlds -> base.json"""
import sys, json, time, numpy as np, collections
sys.path.insert(0, "results/click-mix")
from worlds import *; from env import *
from rankloop import rankers
from rankloop.base import Ranking
R = {
 "PBMTS": lambda w: rankers.PBMTS(n_items=w.n, n_positions=w.positions),
 "PBMTS5000": lambda w: rankers.PBMTS(n_items=w.n, n_positions=w.positions, forget=5000),
 "FTRLhm": lambda w: rankers.FTRLPBM(n_items=w.n, n_positions=w.positions, regulariser="hybrid", estimator="mean"),
 "GRAB": lambda w: rankers.GRAB(n_items=w.n, n_positions=w.positions),
 "PBMPIE": lambda w: rankers.PBMPIE(n_items=w.n, n_positions=w.positions, horizon=w.T),
 "TopRank": lambda w: rankers.TopRank(n_items=w.n, n_positions=w.positions, horizon=w.T),
 "KLUCB": lambda w: rankers.CascadeKLUCB(n_items=w.n, n_positions=w.positions),
 "Robust": lambda w: rankers.CascadeRobustUCB(n_items=w.n, n_positions=w.positions),
}
def run(make, w, seed, loop):
    e = build(w, seed); r = make(w); m = w.positions
    words = np.random.default_rng([3, seed]).bit_generator.random_raw(w.T)
    clicks = np.empty(m); curve = np.empty(w.T)
    if w.delay:
        q = collections.deque(); rng = np.random.default_rng([3, seed]); tot = 0.
        for t in range(w.T):
            k = r.rank(rng=rng); v, ref = user(e, t, k.items, clicks); tot += ref - v
            q.append((k, clicks.copy()))
            if len(q) > w.delay: r.learn(*q.popleft())
        return tot
    tot = 0.; cuts = [0] + [c[0] for c in w.changes] + [w.T]
    for a, b in zip(cuts, cuts[1:]):
        if a:
            item = [i for t, i in w.changes if t == a][0]
            origin = np.arange(w.n); origin[item] = -1
            new = make(w); new.carry(r, origin); r = new
        items, prop, memo = r.blank_ticket(m)
        tot += loop(e, a, b, r.params, r.state, r.scratch(m), items, prop, memo, clicks, words, curve)
    return tot
if __name__ == "__main__":
    name, seeds = sys.argv[1], int(sys.argv[2]); out = {}
    make = R[name]; loops = {}
    for w in all_worlds():
        if name in ("TopRank", "PBMPIE", "GRAB", "FTRLhm", "Robust", "KLUCB", "PBMTS5000") and w.n > 1000: continue
        try:
            r = make(w)
            k = (id(r.kernels.rank), id(r.kernels.learn))
            if k not in loops: loops[k] = make_loop(r.kernels.rank, r.kernels.learn)
            t0 = time.time(); rr = random_regret(w)
            vals = [run(make, w, s, loops[k]) / rr for s in range(seeds if w.n <= 100 else 1)]
        except ValueError as x:
            print(name, w.name, "skip", str(x)[:80], flush=True); continue
        out[w.name] = vals
        print(f"{name:10s} {w.name:24s} {100*np.mean(vals):7.2f} %  {(time.time()-t0)/len(vals)/w.T*1e6:6.1f} us", flush=True)
        json.dump(out, open(f"results/click-mix/base_{name}.json", "w"))
