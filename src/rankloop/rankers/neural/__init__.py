"""Rankers whose scores come from any torch module; they need the extra `torch`, which nothing else does."""

from rankloop.rankers.neural.module_ranker import ModuleRanker
from rankloop.rankers.neural.neural_pdgd import NeuralPDGD
from rankloop.rankers.neural.neural_rtopk import NeuralRTopK

__all__ = ["ModuleRanker", "NeuralPDGD", "NeuralRTopK"]
