"""Ten items, ten thousand people, and a ranker that hears about the top item only."""

from rankloop import environments, rankers, simulation

people = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
learners = {
    "hears of the top item": rankers.RTop1F(n_items=10, horizon=10_000, measure="dcg"),
    "hears of every item": rankers.FTPL(n_items=10, horizon=10_000, measure="dcg"),
    "never learns": rankers.Uniform(n_items=10),
}

print("10,000 people, each shown a ranking of 10 items. DCG: higher is better.\n")
for name, ranker in learners.items():
    people.restart()  # the same people for each
    trace = simulation.play(ranker, people, rounds=10_000, seed=1)
    print(f"{name:>22}: mean DCG {trace.mean_value:.3f}, regret {trace.total_regret:6,.0f}")

print("\nRegret is what the best fixed ranking would have earned more, over all rounds.")
