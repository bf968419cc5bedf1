"""Makes the pictures that README and docs show: `.venv/bin/python docs/images/make.py`.

Names of pictures as arguments make only those.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import catalogue_sizes
import comparison
import learning_curves
import numpy as np
import query_memory
from PIL import Image

from rankloop import experiments, feedback, logs, plotting, suite
from rankloop.cli.click_reports import draw_counts
from rankloop.experiments.harness.reproduce import reproduce

HERE = Path(__file__).parent


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


def from_experiment(experiment: str, figure: str, drawn: Path) -> None:
    """A figure of an experiment; its quick settings draw it from the same runs as the full ones."""
    folder = drawn.parent
    reproduce(experiments.get(experiment), out=folder, quick=True)
    (folder / experiment / f"{figure}.png").rename(drawn)


def of_suite(drawn: Path) -> None:
    """The chart of click rankers in the quick suite; a few minutes."""
    from rankloop.suite.report import write_report

    write_report([suite.run(suite.every_entry())], drawn.parent)


def of_benchmark(name: str, drawn: Path) -> None:
    """The picture of a benchmark, which prints its table: both from one run."""
    command = [sys.executable, "-m", "benchmarks", name, "--pictures", str(drawn.parent)]
    subprocess.run(command, cwd=HERE.parents[1], check=True)


PICTURES: dict[str, Callable[[Path], object]] = {
    "pbm-2022-leader.png": lambda drawn: from_experiment("pbm-2022-leader", "leader", drawn),
    "learning-curves.png": lambda drawn: plotting.save(learning_curves.draw(), drawn, ending="png"),
    "catalogue-sizes.png": lambda drawn: plotting.save(catalogue_sizes.draw(), drawn, ending="png"),
    "catalogue-growth.png": lambda drawn: of_benchmark("catalogue", drawn),
    "query-memory.png": lambda drawn: plotting.save(query_memory.draw(), drawn, ending="png"),
    "comparison.png": lambda drawn: plotting.save(comparison.draw(), drawn, ending="png"),
    "fit-clicks.png": lambda drawn: plotting.save(
        draw_counts(logs.fit_pbm(clicks_of_users())), drawn, ending="png"
    ),
    "suite-clicks.png": of_suite,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as out:
            PICTURES[name](Path(out) / name)
            keep(Path(out) / name, name)
