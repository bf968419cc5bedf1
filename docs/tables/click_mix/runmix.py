import sys, json, time, numpy as np, importlib, os
sys.path.insert(0, "results/click-mix")
from worlds import *; from env import *
from numba import njit
modname = os.environ.get("MIX", "mix"); mix = importlib.import_module(modname)
rank, learn = mix.rank, mix.learn
@njit(error_model="numpy")
def loop(e, start, end, delay, params, state, scratch, words, curve, Q, C, P, M):
    reg = 0.0; d = delay + 1; m = Q.shape[1]
    for t in range(start, end):
        k = t % d
        rank(params, state, None, words[t], scratch, Q[k], P[k], (M[k],))
        v, r = user(e, t, Q[k], C[k])
        reg += r - v; curve[t] = r - v
        if t >= delay:
            k = (t - delay) % d
            learn(params, state, None, scratch, Q[k], P[k], (M[k],), C[k])
    return reg
def run(w, seed, kw):
    e = build(w, seed); m = w.positions
    params, state, scratch = mix.make(w.n, m, **kw)
    words = np.random.default_rng([3, seed]).bit_generator.random_raw(w.T)
    curve = np.empty(w.T); d = w.delay + 1
    Q, C, P, M = np.zeros((d, m), np.int64), np.zeros((d, m)), np.zeros((d, m)), np.zeros((d, m))
    tot = 0.; cuts = [0] + [c[0] for c in w.changes] + [w.T]
    for a, b in zip(cuts, cuts[1:]):
        if a: mix.carry(state, [i for t, i in w.changes if t == a][0], w.n)
        tot += loop(e, a, b, w.delay, params, state, scratch, words, curve, Q, C, P, M)
    return tot, state, curve
def load_best():
    best = {}
    for f in os.listdir("results/click-mix"):
        if f.startswith("base_") and f.endswith(".json"):
            try: d = json.load(open(f"results/click-mix/{f}"))
            except Exception: continue
            for k, v in d.items():
                x = float(np.mean(v))
                if k not in best or x < best[k][0]: best[k] = (x, f[5:-5])
    return best
if __name__ == "__main__":
    import argparse
    ap = argparse.ArgumentParser(); ap.add_argument("--seeds", type=int, default=2); ap.add_argument("--kw", default="{}"); ap.add_argument("--half", default="choose")
    ap.add_argument("--only", default=""); ap.add_argument("--big", action="store_true"); ap.add_argument("--out", default="")
    a = ap.parse_args(); kw = eval(a.kw); best = load_best(); res = {}; mult = []; ok = 0; worst = 0; miss = []
    n_all = len(all_worlds())
    for idx, w in enumerate(all_worlds() + tuning_only()):
        if idx >= n_all and a.half == 'report': continue
        if idx < n_all and a.half != "all" and half(idx) != a.half: continue
        if a.only and not any(w.name.startswith(o) for o in a.only.split(",")): continue
        if w.n >= 1000 and not a.big: continue
        rr = random_regret(w); t0 = time.process_time()
        rs = [run(w, s, kw) for s in range(a.seeds if w.n <= 100 else 1)]
        x = float(np.mean([r[0] for r in rs])) / rr; us = (time.process_time() - t0) / len(rs) / w.T * 1e6
        b, who = best.get(w.name, (float("nan"), ""))
        st = rs[-1][1]; wt = st.weight.sum(axis=1); wr = st.weight.sum(axis=0)
        print(f"{w.name:24s} {100*x:7.2f} %  best {100*b:7.2f} {who:9s} {us:6.1f} us  mem {np.round(wt,2)} read {np.round(wr,2)}", flush=True)
        res[w.name] = x; worst = max(worst, x)
        if b == b:
            ratio = max(x, .0005) / max(b, .0005); mult.append(ratio); good = x <= 1.5 * b or x <= b + .01; ok += good
            if not good: miss.append((w.name, round(100*x,2), round(100*b,2)))
    print(f"GEO {np.exp(np.mean(np.log(mult))):.3f}  ok {ok}/{len(mult)}  worst {100*worst:.1f}  {kw}"); print(" miss", miss)
    if a.out: json.dump(res, open(a.out, "w"))
