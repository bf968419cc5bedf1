from __future__ import annotations

import subprocess
import sys

from rankloop.experiments.plotting import figures


def test_a_caption_is_found_again_and_takes_its_own_room() -> None:
    caption = "Look at the end of the line. " * 10
    figure, panels = figures.canvas(title="t", caption=caption, rows=2, columns=2)
    text, share = figures.caption_of(figure)
    assert text == caption.strip()
    assert len(panels) == 4
    assert all(axes.get_position().y0 > share for axes in panels)


def test_thinning_keeps_the_first_and_the_last_row() -> None:
    kept = figures.thin(10_000, points=300)
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert len(kept) <= 300


def test_no_global_plotting_state() -> None:
    code = (
        "import sys; from rankloop.experiments.plotting import figures; "
        "figures.finish(figures.canvas(title='', caption='')[0]); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
