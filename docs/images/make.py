"""Makes the pictures that README and docs show: `.venv/bin/python docs/images/make.py`."""

import tempfile
from pathlib import Path

from PIL import Image

from rankloop import experiments
from rankloop.experiments.reproducing import reproduce

HERE = Path(__file__).parent
# picture here: (experiment, figure of it). The quick settings draw these figures from the same runs as the full ones.
PICTURES = {"top1-2015-fig2.png": ("top1-2015-fig2", "from-round-1000")}

with tempfile.TemporaryDirectory() as out:
    for name, (experiment, figure) in PICTURES.items():
        reproduce(experiments.get(experiment), out=Path(out), quick=True)
        with Image.open(Path(out) / experiment / f"{figure}.png") as picture:
            # A few dozen colours are enough for lines and letters, at a third of the size.
            picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(HERE / name, optimize=True)
        print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")
