"""From a click log to a running service: which users does the log show, and which ranker learns from them best?"""

import subprocess
import sys
from dataclasses import replace

import numpy as np

from rankloop import Client, data, environments, feedback, load, logs, rankers, simulation

try:
    path = data.find("clicks/yandex_wscd/trainSample.jsonl.gz")
except data.DataMissing as missing:
    print(f"Skipped: {missing}")
    sys.exit(0)

# The log: pages of one query. Which click model predicts the later pages best?
pages = data.read_sessions(path).select(query="9982_0")
compared = logs.compare_models(pages, ["rctr", "pbm", "cascade", "ubm"])
print(pages)
print(compared.advice())

# The world: users who click so, and the ten documents that the log knows best.
found = logs.fit_model(pages, compared.best)
users = found.model()
assert isinstance(users, feedback.UserBrowsingModel)
times = np.bincount(pages.items[pages.items >= 0], minlength=pages.n_items)
shown = dict(zip(pages.item_ids, times.tolist(), strict=True))
documents = sorted(found.names, key=lambda name: -shown[name])[:10]
users = replace(users, attraction=users.attraction[[found.names.index(name) for name in documents]])
world = environments.ClickUsers(users, n_positions=3)
print(f"Best list: {world.value(world.best()):.3f} clicks a page\n")

# The rankers, each with three seeds.
size = {"n_items": world.n_items, "n_positions": world.n_positions}
candidates = {
    "Uniform": rankers.Uniform(**size),
    "TopRank": rankers.TopRank(**size, delta=0.001),
    "CascadeKLUCB": rankers.CascadeKLUCB(**size),
    "PBMTS": rankers.PBMTS(**size, examination=found.examination[:3] / found.examination[0]),
}
clicks = {}
for name, ranker in candidates.items():
    runs = [simulation.play(ranker.clone(), world.clone(), rounds=5_000, seed=seed) for seed in (1, 2, 3)]
    clicks[name] = float(np.mean([run.mean_value for run in runs]))
    print(f"{name:>12}: {clicks[name]:.3f} clicks a page")
best = max(clicks, key=lambda name: clicks[name])

# The best one, in a file and from there in a service.
candidates[best].save("best.npz")
chosen = load("best.npz").get_params()
service = subprocess.Popen(
    [sys.executable, "-m", "rankloop", "serve", "--memory", "--port", "0"], stdout=subprocess.PIPE, text=True
)
try:
    assert service.stdout is not None
    client = Client(service.stdout.readline().split()[-1])  # it prints its address
    parameters = {name: value for name, value in chosen.items() if name != "n_items" and value is not None}
    client.create("search", algorithm=best, items=documents, parameters=parameters, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(100):
        page = client.rank("search")
        places = np.array([[documents.index(name) for name in page.items]])
        clicked = users.click(places, rng=rng)[0].tolist()
        client.feedback("search", page.decision_id, clicks=clicked)
    print(f"\n{best} is in the service, and shows {', '.join(client.ranker('search').current[:3])}")
finally:
    service.terminate()
    service.wait()
