import os, sys; os.environ["MIX"] = "packed"; sys.path.insert(0, "results/click-mix")
from runmix import *
out = {}
ws = [w for w in all_worlds() + tuning_only() if w.n < 100] + [w for w in all_worlds() if w.n in (100, 200)]
for w in ws:
    rr = random_regret(w)
    for c in (0.0, 5.0):
        t0 = time.process_time()
        out.setdefault(w.name, {})[str(c)] = [run(w, s, dict(insurance=c))[0] / rr for s in range(2 if w.n < 100 else 1)]
        print(w.name, c, [round(100*x, 2) for x in out[w.name][str(c)]], round((time.process_time()-t0)/2/w.T*1e6, 1), flush=True)
    json.dump(out, open("final.json", "w"))
