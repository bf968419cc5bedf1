import sys; sys.path.insert(0, "results/click-mix")
import json, numpy as np
from worlds import *; import os
base = {}
for f in sorted(os.listdir(".")):
    if f.startswith("base_") and f.endswith(".json"):
        for k, v in json.load(open(f)).items(): base.setdefault(k, {})[f[5:-5]] = float(np.mean(v))
print({k: len([1 for b in base.values() if k in b]) for k in ("PBMTS","GRAB","KLUCB","FTRLhm","PBMTS5000","PBMPIE")})
fin = json.load(open("final.json"))
ws = all_worlds()
for c in ("0.0", "5.0"):
  for h in ("choose", "report", "all"):
    mult, ok, worst, miss, beat = [], 0, ("", 0), [], 0
    for i, w in enumerate(ws):
        if h != "all" and half(i) != h or w.name not in fin or c not in fin[w.name]: continue
        x = float(np.mean(fin[w.name][c])); b = min(base[w.name].values())
        mult.append(max(x, 5e-4) / max(b, 5e-4)); g = x <= 1.5 * b or x <= b + .01; ok += g; beat += x <= b
        if x > worst[1]: worst = (w.name, round(x, 3))
        if not g: miss.append((w.name, round(100 * x, 2), round(100 * b, 2), min(base[w.name], key=base[w.name].get)))
    print(c, h, "GEO %.3f" % np.exp(np.mean(np.log(mult))), f"ok {ok}/{len(mult)} beat {beat}", worst, miss)
# same table for library rankers against the best of the others
for k in ("PBMTS", "PBMTS5000", "FTRLhm", "GRAB", "KLUCB"):
    m = [max(b[k], 5e-4) / max(min(b.values()), 5e-4) for n, b in base.items() if k in b]; 
    print(k, "GEO %.2f" % np.exp(np.mean(np.log(m))), "worst", max((b[k], n) for n, b in base.items() if k in b), len(m))
if len(sys.argv) > 1:
    for w in ws:
        if w.name in fin: print(w.name, "ours", {c: round(100*float(np.mean(v)),2) for c, v in fin[w.name].items()}, {k: round(100*v, 2) for k, v in base[w.name].items()})
    for w in tuning_only(): print(w.name, {c: round(100*float(np.mean(v)),1) for c, v in fin.get(w.name, {}).items()})
