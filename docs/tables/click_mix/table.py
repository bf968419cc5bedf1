import sys; sys.path.insert(0, "results/click-mix")
import json, os, numpy as np
from worlds import *
base = {}
for f in sorted(os.listdir(".")):
    if f.startswith("base_") and f.endswith(".json"):
        for k, v in json.load(open(f)).items(): base.setdefault(k, {})[f[5:-5]] = 100 * float(np.mean(v))
fin = json.load(open("final.json"))
name = {"FTRLhm": "FTRLPBM", "PBMTS5000": "PBMTS, `forget=5000`", "KLUCB": "CascadeKLUCB"}
cell = lambda x: f"{x:.1f}" if x >= 1 else f"{x:.2f}"
print("| world | ClickMix | `insurance=5` | best of the others | which | PBMTS | FTRLPBM |\n| --- | ---: | ---: | ---: | --- | ---: | ---: |")
for i, w in enumerate(all_worlds()):
    if half(i) != "report" or w.name not in fin: continue
    x = 100 * float(np.mean(fin[w.name]["0.0"])); y = 100 * float(np.mean(fin[w.name]["5.0"])); b = base[w.name]; k = min(b, key=b.get)
    f = cell(b["FTRLhm"]) if "FTRLhm" in b else ""
    print(f"| {w.name} | {cell(x)} | {cell(y)} | {cell(b[k])} | {name.get(k, k)} | {cell(b['PBMTS'])} | {f} |")
