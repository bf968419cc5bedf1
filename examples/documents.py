"""Ranking documents by their features: three rankers on the same queries, one with only the top label revealed."""

from rankloop import data, environments, rankers, simulation

ROUNDS, FEATURES = 20_000, 20

queries = data.synthetic_letor(n_queries=500, n_features=FEATURES, seed=1)  # or read_letor(path).bounded()
train, test = queries.split(train=0.8)
print(f"{queries}\n{train.n_queries} queries to train on, {test.n_queries} to test on\n")

learners = {
    "RTopKF, top label revealed": rankers.RTopKF(n_features=FEATURES),
    "ListNet, full information": rankers.ListNet(n_features=FEATURES),
    "Uniform, no feedback": rankers.Uniform(),
}
stream = environments.QueryStream(train, measure="ndcg@10")
unseen = environments.QueryStream(test, measure="ndcg@10")

print(f"{'NDCG@10':<28}{'all rounds':>12}{'last tenth':>12}{'new queries':>13}")
for name, ranker in learners.items():
    stream.restart()  # the same queries for each
    trace = simulation.play(ranker, stream, rounds=ROUNDS, seed=1, points=10)
    if isinstance(ranker, rankers.Uniform):
        unseen.restart()
        new = simulation.play(ranker, unseen, rounds=ROUNDS, seed=1).mean_value
    else:
        new = unseen.greedy_values(ranker.state.w).mean()  # sorted by score, without exploration
    print(f"{name:<28}{trace.mean_value:>12.3f}{trace.value[-1]:>12.3f}{new:>13.3f}")

print(f"\nRTopKF observed one label in {train.lengths.mean():.0f}, ListNet all of them.")
