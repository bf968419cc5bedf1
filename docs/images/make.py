"""Makes the pictures that README and docs show: `.venv/bin/python docs/images/make.py`."""

import tempfile
from pathlib import Path

import catalogue_sizes
import learning_curves
import numpy as np
from PIL import Image

from rankloop import experiments, feedback, logs
from rankloop.cli import fit_clicks
from rankloop.cli.rates_figure import save_rates
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.plotting import figures
from rankloop.games.rates import rates

HERE = Path(__file__).parent
# picture here: (experiment, figure of it). The quick settings draw these figures from the same runs as the full ones.
PICTURES = {
    "pbm-2022-leader.png": ("pbm-2022-leader", "leader"),
}


def keep(drawn: Path, name: str) -> None:
    """Store a picture here."""
    with Image.open(drawn) as picture:
        # A few dozen colours are enough for lines and letters, at a third of the size.
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(HERE / name, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


def clicks_of_users() -> feedback.ClickLog:
    """20,000 pages of twelve items, good ones mostly on top, and the clicks on them."""
    rng = np.random.default_rng(1)
    users = feedback.PositionBasedModel(
        attraction=np.geomspace(0.7, 0.05, 12), examination=np.linspace(1.0, 0.25, 10)
    )
    items = np.argsort(np.arange(12) + 2 * rng.standard_normal((20_000, 12)), axis=1)[:, :10]
    return feedback.ClickLog.count(items=items, clicks=users.click(items, rng=rng), name="simulated users")


with tempfile.TemporaryDirectory() as out:
    for name, (experiment, figure) in PICTURES.items():
        reproduce(experiments.get(experiment), out=Path(out), quick=True)
        keep(Path(out) / experiment / f"{figure}.png", name)
    figures.save(learning_curves.draw(), Path(out) / "learning-curves.png", ending="png")
    keep(Path(out) / "learning-curves.png", "learning-curves.png")
    figures.save(catalogue_sizes.draw(), Path(out) / "catalogue-sizes.png", ending="png")
    keep(Path(out) / "catalogue-sizes.png", "catalogue-sizes.png")
    figures.save(fit_clicks.draw(logs.fit_pbm(clicks_of_users())), Path(out) / "fit-clicks.png", ending="png")
    keep(Path(out) / "fit-clicks.png", "fit-clicks.png")
    save_rates(rates(n_items=4), Path(out) / "rates.png")
    keep(Path(out) / "rates.png", "rates-4.png")
