"""Options for reading learning-to-rank text, checked."""

from typing import NamedTuple

from rankloop.arguments import whole
from rankloop.data.dataset import DType
from rankloop.data.letor.presets import Preset


class Options(NamedTuple):
    """Together with the text they determine a dataset, but for its name."""

    rescale: bool  # every feature from 0 to 1 within each query
    dtype: DType
    n_features: int | None  # None: as many as appear
    first_feature: int
    max_grade: int | None  # None: the highest that appears
    in_comment: bool  # the query is named in the comment
    marks: bool  # the largest magnitudes stand for infinity


def checked(
    *, normalize: str | None, dtype: DType, preset: Preset | None, n_features: int | None, first_feature: int
) -> Options:
    """Options from the arguments of `read_letor`."""
    if normalize not in ("query", None):
        raise ValueError(f"normalize must be 'query' or None, got {normalize!r}")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    if first_feature not in (0, 1):
        raise ValueError(f"first_feature must be 0 or 1, got {first_feature!r}")
    if n_features is not None:
        whole("n_features", n_features, at_least=1)
    if n_features is None and preset is not None:
        n_features = preset.n_features
    return Options(
        rescale=normalize == "query",
        dtype=dtype,
        n_features=n_features,
        first_feature=first_feature,
        max_grade=None if preset is None else preset.max_grade,
        in_comment=preset is not None and preset.in_comment,
        marks=preset is not None and preset.marks,
    )
