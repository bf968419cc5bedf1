"""The picture of the page on comparisons: three rankers in two worlds."""

from matplotlib.figure import Figure

from rankloop import environments, rankers, simulation


def compared() -> simulation.Comparison:
    """The comparison of that page."""
    size = {"n_items": 10, "n_positions": 5}
    return simulation.compare(
        {
            "random": rankers.Uniform(**size),
            "FTRLPBM": lambda world: rankers.FTRLPBM(n_items=world.n_items, n_positions=world.n_positions),
            "PBMTS": rankers.PBMTS(**size),
        },
        {"small gaps": environments.named("gap-0.03"), "search engine": environments.named("yandex")},
        rounds=5_000,
        seeds=8,
    )


def draw() -> Figure:
    """Regret against rounds."""
    return compared().plot()
