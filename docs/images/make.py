"""Makes the pictures that README and docs show: `.venv/bin/python docs/images/make.py`."""

import tempfile
from pathlib import Path

from PIL import Image

from rankloop import experiments
from rankloop.experiments.rates_picture import save_rates
from rankloop.experiments.reproducing import reproduce
from rankloop.games.rates import rates

HERE = Path(__file__).parent
# picture here: (experiment, figure of it). The quick settings draw these figures from the same runs as the full ones.
PICTURES = {"top1-2015-fig2.png": ("top1-2015-fig2", "from-round-1000")}


def keep(picture: Path, name: str) -> None:
    """A few dozen colours are enough for lines and letters, at a third of the size."""
    with Image.open(picture) as drawn:
        drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(HERE / name, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


with tempfile.TemporaryDirectory() as out:
    for name, (experiment, figure) in PICTURES.items():
        reproduce(experiments.get(experiment), out=Path(out), quick=True)
        keep(Path(out) / experiment / f"{figure}.png", name)
    save_rates(rates(n_items=4), Path(out) / "rates.png")
    keep(Path(out) / "rates.png", "rates-4.png")
