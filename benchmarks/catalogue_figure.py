"""The picture of how a round grows with the number of items."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.catalogue_rankers import POSITIONS
from benchmarks.growth import Growth
from rankloop import plotting

# By the first word of a row: its panel and colour.
_CLICKS = {
    "FTRLPBM": plotting.BLUE,
    "TopRank": plotting.ORANGE,
    "RankedExp3": plotting.GREEN,
    "LinTSPBM": plotting.SKY,
    "PBMPIE": plotting.PURPLE,
    "CascadeKLUCB": plotting.INK,
    "PBMTS": plotting.GOLD,
}
_OTHERS = {
    "RTop1F": plotting.BLUE,
    "TopFTRL": plotting.ORANGE,
    "PDGD": plotting.PURPLE,
    "RTopKF": plotting.GREEN,
}


def draw(found: Sequence[Growth]) -> Figure:
    """Microseconds a round against the number of items, both on logarithmic axes."""
    figure, (left, right) = plotting.canvas(
        title="A round of FTRLPBM hardly grows with the number of items; most others look at each",
        subtitle="Microseconds of a simulated round by number of items, on one core: lower is better.",
        caption=f"Left: {POSITIONS} of n items are shown and clicks on them observed; dashed, the first rounds of "
        "FTRLPBM. Right: the top item of a list of all n is rated (RTop1F, TopFTRL), the label of the top document is "
        f"observed (RTopKF), or clicks on {POSITIONS} documents (PDGD). Lines end where a ranker is of no more use.",
        width=12.0,
        height=5.6,
        columns=2,
    )
    _panel(left, found, _CLICKS, "Clicks observed")
    _panel(right, found, _OTHERS, "Other feedback, and documents")
    return plotting.finish(figure)


def _panel(axes: Axes, found: Sequence[Growth], colours: dict[str, str], title: str) -> None:
    drawn = set()
    for one in reversed(found):  # of two rows of a ranker, the second is its line
        name = one.name.split(",")[0]
        if name in colours:
            times = [1e6 * spent for spent in one.seconds.values()]
            again = name in drawn
            label = f"_{one.name}" if again else name
            plotting.curve(
                axes,
                list(one.seconds),
                times,
                label=label,
                colour=colours[name],
                dashed=again,
                points=not again,
            )
            drawn.add(name)
    plotting.log_axis(axes, y=True)
    plotting.name_axes(axes, x="items, n", y=title)
    axes.set_ylim(0.05, 60_000)  # both panels alike
