"""A service, simulated users, and what the service estimates about its lists beside the truth."""

import subprocess
import sys

import numpy as np

from rankloop import Client

HELPS = {"take a walk": 0.8, "meditate": 0.6, "listen to music": 0.5, "make tea": 0.3, "read the news": 0.1}

service = subprocess.Popen(
    [sys.executable, "-m", "rankloop", "serve", "--memory", "--port", "0"], stdout=subprocess.PIPE, text=True
)
assert service.stdout is not None
client = Client(service.stdout.readline().split()[-1])  # it prints its address
client.create("unwind", algorithm="TopFTRL", items=list(HELPS), seed=1)

rng = np.random.default_rng(1)
discount = 1 / np.log2(np.arange(2, 2 + len(HELPS)))
worth = []
for _ in range(600):
    shown = client.rank("unwind")
    helped = {name: float(rng.random() < chance) for name, chance in HELPS.items()}
    client.feedback(
        "unwind", shown.decision_id, relevance=[helped[shown.items[0]]]
    )  # only the top is revealed
    worth.append(float(discount @ [helped[name] for name in shown.items]))

told = client.ranker("unwind")
dcg = told.estimates["value"]["dcg"]
assert dcg is not None  # it would be None before anything was observed
print("Current order:", " > ".join(told.current))
print(
    f"Mean DCG of its lists, estimated: {dcg.mean:.2f}, 95% confidence interval {dcg.low:.2f} to {dcg.high:.2f}"
)
print(f"Mean DCG of its lists, true:      {np.mean(worth):.2f}")
service.terminate()
service.wait()
