"""Makes the stored log: a small store as this version's service writes it, which every later one must open.

Five rankers of different kinds with lists, feedback, features, items that come and go, a trial, a rollback, snapshots
and Parquet segments. A list has expired, others are left open. Beside the store lies `expected.json`: of each ranker
what `rankloop verify` says, the state, and the list that comes next. Everything goes through commands and `Client`.

It is made once and then kept: a log made anew says nothing about the logs that people have. For a new format of the
log add a second one, with this program and another name:

    python -m tests.guards.stored_log tests/guards/stored_log-0.3
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankloop import Client
from rankloop.serving.client import RankAnswer

ITEMS = ["walk", "meditate", "music", "tea", "nap", "book"]
LIKED = {"walk", "tea", "swim"}
BASELINE = ["music", "walk", "nap", "tea", "meditate", "book"]
PATIENT = {"deadline_seconds": 1e9}  # lists that are open stay so for thirty years
STORE, EXPECTED = "store.tar.xz", "expected.json"
# What a list of each ranker is asked with, and the kind and length of its feedback.
FEEDBACK = {
    "top": ("relevance", 1),
    "measured": ("relevance", 1),
    "clicks": ("clicks", 3),
    "documents": ("relevance", 2),
    "thompson": ("clicks", 3),
}


def command(*words: str) -> str:
    """What `rankloop` prints; an error where it fails."""
    program = [sys.executable, "-m", "rankloop", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"rankloop {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def service(data: Path) -> Iterator[Client]:
    """`rankloop serve` on a folder, in a process of its own, and a client of it."""
    program = [sys.executable, "-m", "rankloop", "serve", "--port", "0", "--data", str(data)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = re.search(r"http://\S+", process.stdout.readline())
        try:
            assert url is not None, "the service does not start"
            with Client(url[0], timeout=120.0) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=90)


def request(name: str, number: int) -> dict[str, Any]:
    """What the list of that number is asked with: of these rankers, one takes features and one has a trial."""
    if name == "documents":
        rng = np.random.default_rng([2015, number])
        documents = [f"document {i}" for i in range(5)]
        return {"items": documents, "features": rng.random((5, 3)).astype(np.float32)}
    if name == "clicks":
        return {"baseline": BASELINE, "context": {"visit": number}}
    return {}


def values(name: str, shown: Sequence[str], number: int) -> dict[str, list[float]]:
    """The feedback on a list, without chance."""
    kind, length = FEEDBACK[name]
    liked = [float(item in LIKED or _coin(item, number)) for item in shown[:length]]
    return {kind: liked}


def _coin(item: str, number: int) -> bool:
    """A coin for an item and a list that is the same in every process."""
    return (sum(item.encode()) + 7 * number) % 5 == 0


def one_round(client: Client, name: str, number: int) -> RankAnswer:
    """Ask for a list and answer it."""
    shown = client.rank(name, decision_id=f"list {number}", **request(name, number))
    assert client.feedback(name, shown.decision_id, **values(name, shown.items, number)).status == "accepted"
    return shown


def _rounds(client: Client, name: str, first: int, n: int) -> None:
    for number in range(first, first + n):
        one_round(client, name, number)


def _history(folder: Path) -> None:
    """Everything that happens to the five rankers."""
    with service(folder) as client:
        three = {"n_positions": 3}
        trial = {"apprentice": True, "holdout": 0.25, **PATIENT}
        soon = {"deadline_seconds": 2.0}
        dcg, with_features = {"measure": "dcg"}, {"n_features": 3, "k": 2}
        client.create("top", algorithm="RTop1F", items=ITEMS, policy=soon, seed=7)
        client.create("measured", algorithm="TopFTRL", items=ITEMS, parameters=dcg, policy=PATIENT, seed=8)
        client.create("clicks", algorithm="FTRLPBM", items=ITEMS, parameters=three, policy=trial, seed=9)
        client.create("documents", algorithm="RTopKF", parameters=with_features, policy=PATIENT, seed=10)
        client.create("thompson", algorithm="PBMTS", items=ITEMS, parameters=three, policy=PATIENT, seed=11)
        for name in FEEDBACK:
            _rounds(client, name, 0, 20)
            client.take_snapshot(name)
        client.rank("top", decision_id="never answered")
        while not client.decision("top", "never answered").expired:
            time.sleep(0.2)
        client.change_policy("top", **PATIENT)
        client.promote("clicks", share=0.5)
        client.change_items("top", add=["swim"], retire=["nap"])
        client.change_items("thompson", retire=["book"])
        client.change_policy("measured", exploration_cap=0.5)
        for name in FEEDBACK:
            _rounds(client, name, 20, 15)
        snapshot = client.take_snapshot("measured")[-1]
        _rounds(client, "measured", 35, 5)
        client.rollback("measured", to_seq=snapshot.seq)
        client.freeze("thompson")
        client.freeze("thompson", frozen=False)
    command("trim", "top", "--retain", "20", "--data", str(folder))
    with service(folder) as client:
        for name in FEEDBACK:
            _rounds(client, name, 40, 5)
            client.rank(name, decision_id="open", **request(name, 45))
        client.take_snapshot("thompson")
        client.take_snapshot("top")


def next_lists(client: Client) -> dict[str, dict[str, Any]]:
    """Of each ranker its state, and the list that it shows next."""
    told = {}
    for name in FEEDBACK:
        state = client.ranker(name)
        shown = client.rank(name, decision_id="next", **request(name, 50))
        told[name] = {
            "rounds": state.rounds,
            "state_hash": state.state_hash,
            "current": state.current,
            "items": shown.items,
            "propensities": shown.propensities,
        }
    return told


def unpack(folder: Path, to: Path) -> Path:
    """Put the stored log into a new folder; the folder of the store."""
    with tarfile.open(folder / STORE) as packed:
        packed.extractall(to, filter="data")
    return to / "store"


def make(folder: Path) -> None:
    """Make the stored log in a new folder."""
    with tempfile.TemporaryDirectory() as place:
        live, copy = Path(place) / "live", Path(place) / "store"
        _history(live)
        command("backup", str(copy), "--data", str(live))
        folder.mkdir(parents=True)
        with tarfile.open(folder / STORE, "w:xz", preset=9) as packed:
            packed.add(copy, "store", filter=_anonymous)
        verdict = command("verify", "--data", str(copy)).splitlines()
        with service(copy) as client:
            expected = {"verify": verdict, "rankers": next_lists(client)}
    (folder / EXPECTED).write_text(json.dumps(expected, indent=1) + "\n")


def _anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without whose the file is, and when it was made."""
    file.uid = file.gid = file.mtime = 0
    file.uname = file.gname = ""
    return file


if __name__ == "__main__":
    make(Path(sys.argv[1]))
