"""SplitMix64 in plain Python: what the kernels' random numbers must be."""

from __future__ import annotations

MASK = (1 << 64) - 1


def words(seed: int, n: int) -> list[int]:
    """As Steele, Lea and Flood wrote it: add the golden ratio to the state, mix what comes out."""
    mixed = []
    for _ in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        mixed.append(z ^ (z >> 31))
    return mixed


def uniforms(seed: int, n: int) -> list[float]:
    """The upper 53 bits of each word, as a number in [0, 1)."""
    return [(word >> 11) / 2**53 for word in words(seed, n)]
