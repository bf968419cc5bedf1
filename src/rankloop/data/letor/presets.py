"""Properties of the published learning-to-rank sets, so that an error in a file is found while reading it."""

from dataclasses import dataclass

from rankloop.arguments import one_of

# A float64 can hold more, but nothing that was measured is this large.
MARKER = 1e300


@dataclass(frozen=True, slots=True)
class Preset:
    """What all files of a published dataset have in common.

    Parameters
    ----------
    name : str
        What `read_letor(preset=...)` calls it.
    n_features : int
        Columns; ids go from 1 to this.
    max_grade : int
        The highest grade of the scale, whether or not a file has a document that good.
    in_comment : bool, optional
        The query id is the first word of the comment at the end of the line; there is no ``qid:``.
    marks : bool, optional
        The files write the largest float64 for "infinite". Such a value becomes the largest ordinary value, or
        negative the least, that its feature has in its query (0 where there is no ordinary one).
    """

    name: str
    n_features: int
    max_grade: int
    in_comment: bool = False
    marks: bool = False


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("yahoo", n_features=700, max_grade=4),
        Preset("yandex", n_features=245, max_grade=4, in_comment=True),
        Preset("mslr", n_features=136, max_grade=4),
        Preset("mq2007", n_features=46, max_grade=2),
        Preset("mq2008", n_features=46, max_grade=2),
        Preset("istella", n_features=220, max_grade=4, marks=True),
    )
}


def get(preset: str | Preset) -> Preset:
    """The preset of that name; a preset of your own is returned as it is."""
    if isinstance(preset, Preset):
        return preset
    return PRESETS[one_of("preset", preset, PRESETS)]
