"""Which gain g(r) a kernel uses, as numbers. Apart from the kernels, so that naming one compiles nothing."""

from __future__ import annotations

NOT_SEPARABLE = -1
IDENTITY = 0  # g(r) = r                                sum_loss, precision
EXP2 = 1  # g(r) = 2^r - 1                              dcg
NDCG = 2  # g(r) = (2^r - 1) / Z(r)                     ndcg
PAIRS = 3  # g(r) = r, offset -s(s+1)/2, binary r only  pairwise_loss
AUC = 4  # the same two divided by N(r) = s(m-s)        auc
