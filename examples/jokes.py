"""Real users: each of 2,499 readers of Jester is one round, and their ratings of ten jokes are the relevance."""

import sys

from rankloop import data, environments, rankers, simulation

try:
    path = data.find("ratings/jester_users_0001_2500.csv.gz")
except data.DataMissing as missing:
    print(f"Skipped: {missing}")
    sys.exit(0)

jokes = data.read_ratings(path).most_rated(10)
funny = jokes.relevance(shuffle_seed=1)  # above the middle of the scale: found it funny
n_readers, n_jokes = funny.shape
print(jokes)
print(f"{n_readers:,} readers rated all {n_jokes}; a joke is found funny {funny.mean():.0%} of the time\n")

each_once = environments.FixedItems(funny, measure="dcg")
repeatedly = environments.FixedItems(environments.users.listed(funny), measure="dcg")

for title, people, rounds in (
    ("each reader once", each_once, n_readers),
    ("readers drawn with replacement", repeatedly, 200_000),
):
    print(f"{title}: {rounds:,} rounds")
    for name, ranker in {
        "random order": rankers.Uniform(n_items=n_jokes),
        "top joke revealed": rankers.RTop1F(n_items=n_jokes, horizon=rounds, measure="dcg"),
        "full information": rankers.FTPL(n_items=n_jokes, horizon=rounds, measure="dcg"),
        "best fixed order": rankers.BestInHindsight(relevance=funny, measure="dcg"),
    }.items():
        trace = simulation.play(ranker, people, rounds=rounds, seed=1)
        people.restart()
        print(
            f"{name:>22}: mean DCG {trace.mean_value:.3f}, regret per round {trace.total_regret / rounds:6.4f}"
        )
    print()

shares = funny.mean(axis=0)
ranked = each_once.best().items
print("The funniest:", ", ".join(f"joke {jokes.item_ids[i]} ({shares[i]:.0%})" for i in ranked[:3]))
print(f"The least funny: joke {jokes.item_ids[ranked[-1]]} ({shares[ranked[-1]]:.0%})")
print("The jokes differ little: it takes many readers to tell them apart.")
