"""Fit one click model with CLAX: run by an interpreter that has it, prints JSON. See benchmarks/click_models.py."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

EPOCHS, BATCH = 80, 1_000


def main(path: str, name: str) -> None:
    """Adam on the likelihood, with a falling step; the log likelihood of a page is told at the end."""
    import clax
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    log = np.load(path)
    items, clicks = log["items"], log["clicks"]
    n, m = items.shape
    kinds = {
        "rctr": clax.RankCTRModel,
        "pbm": clax.PositionBasedModel,
        "ubm": clax.UserBrowsingModel,
        "dcm": clax.DependentClickModel,
        "dbn": clax.DynamicBayesianNetwork,
        "ccm": clax.ClickChainModel,
    }
    sizes = {"query_doc_pairs": int(items.max()) + 1, "positions": m + 1}  # positions count from 1
    wanted = kinds[name].__init__.__code__.co_varnames
    model = kinds[name](**{key: value for key, value in sizes.items() if key in wanted}, rngs=nnx.Rngs(1))
    whole = {
        "query_doc_ids": jnp.array(items),
        "clicks": jnp.array(clicks, jnp.float32),
        "positions": jnp.broadcast_to(jnp.arange(1, m + 1), items.shape),
        "mask": jnp.ones(items.shape, bool),
    }
    steps = EPOCHS * (n // BATCH)
    transform = optax.adam(optax.cosine_decay_schedule(0.05, steps))
    graph, weights = nnx.split(model)
    state = transform.init(weights)

    def loss(weights: object, batch: dict[str, object]) -> jax.Array:
        return nnx.merge(graph, weights).compute_loss(batch).mean() * m  # type: ignore[no-any-return]

    @jax.jit
    def step(weights: object, state: object, rows: jax.Array) -> tuple[object, object]:
        batch = {key: value[rows] for key, value in whole.items()}
        slopes = jax.grad(loss)(weights, batch)
        change, state = transform.update(slopes, state, weights)
        return optax.apply_updates(weights, change), state

    rng = np.random.default_rng(1)
    begin = time.process_time()
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(n), n // BATCH):
            weights, state = step(weights, state, jnp.array(rows))
    value = -float(loss(weights, whole))
    print(json.dumps({"log_likelihood": value, "cpu": time.process_time() - begin}))


if __name__ == "__main__":
    main(*sys.argv[1:])
