"""A service, simulated users, and what the service says about its lists beside the truth."""

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
true = []
for _ in range(600):
    shown = client.rank("unwind")
    helped = {name: float(rng.random() < chance) for name, chance in HELPS.items()}
    client.feedback(
        "unwind", shown.decision_id, relevance=[helped[shown.items[0]]]
    )  # only the top is revealed
    true.append(HELPS[shown.items[0]])

told = client.ranker("unwind")
top = told.estimates["value"]["relevance"]
print("Current order:", " > ".join(told.current))
print(
    f"The top helped, observed: {top.mean:.2f}, with 95% probability between {top.low:.2f} and {top.high:.2f}"
)
print(f"The top helps, true mean: {np.mean(true):.2f}")
print(f"DCG: {told.not_estimated['dcg']}")
service.terminate()
service.wait()
