"""Ten items, ten thousand simulated users, and a ranker that observes the relevance of the top item only."""

from rankloop import environments, rankers, simulation

users = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
learners = {
    "top item revealed": rankers.TopFTRL(n_items=10, measure="dcg"),
    "full information": rankers.FTPL(n_items=10, horizon=10_000, measure="dcg"),
    "random order": rankers.Uniform(n_items=10),
}

print("10,000 users, each shown a ranking of 10 items. DCG: higher is better.\n")
for name, ranker in learners.items():
    users.restart()  # the same users for each ranker
    trace = simulation.play(ranker, users, rounds=10_000, seed=1)
    print(f"{name:>22}: mean DCG {trace.mean_value:.3f}, regret {trace.total_regret:6,.0f}")

print("\nRegret is the value of the best fixed order minus the value obtained, summed over all rounds.")
