"""A service, people who use it, and what it says about its own lists beside the truth."""

import subprocess
import sys

import numpy as np

from rankloop import Client

HELPS = {"take a walk": 0.8, "meditate": 0.6, "listen to music": 0.5, "make tea": 0.3, "read the news": 0.1}

service = subprocess.Popen(
    [sys.executable, "-m", "rankloop", "serve", "--memory", "--port", "0"], stdout=subprocess.PIPE, text=True
)
client = Client(service.stdout.readline().split()[-1])
client.create("unwind", algorithm="RTop1F", items=list(HELPS), seed=1)

rng = np.random.default_rng(1)
discount = 1 / np.log2(np.arange(2, 2 + len(HELPS)))
worth = []
for _ in range(600):
    shown = client.rank("unwind")
    helped = {name: float(rng.random() < chance) for name, chance in HELPS.items()}
    client.feedback("unwind", shown.decision_id, relevance=[helped[shown.items[0]]])  # all that is ever told
    worth.append(float(discount @ [helped[name] for name in shown.items]))

told = client.ranker("unwind")
dcg = told.estimates["value"]["dcg"]
print("It would now show", " > ".join(told.current))
print(
    f"Mean DCG of its lists, as it estimates: {dcg.mean:.2f}, with 95% confidence {dcg.low:.2f} to {dcg.high:.2f}"
)
print(f"Mean DCG of its lists, in truth:        {np.mean(worth):.2f}")
service.terminate()
service.wait()
