"""Replicas behind a real nginx with the configuration of `deploy/`: affinity, and what follows when a replica dies."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from rankloop.serving.client import Client
from rankloop.serving.stores.postgres import PostgresStore
from tests.serving import torture
from tests.serving.postgresql import Server
from tests.serving.process import Service, free_port

PROGRAM = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs the program nginx")
SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx.conf"
# All that a configuration needs beside what is shipped: one process, and its files in a folder of its own.
AROUND = """
daemon off; master_process off; error_log {folder}/error.log; pid {folder}/pid;
events {{ }}
http {{
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    log_format asked '$upstream_addr $request_method $uri $status';
    access_log {folder}/access.log asked;
    {shipped}
}}
"""


class Nginx:
    """It, in front of services, on a port of its own."""

    def __init__(self, folder: Path, services: list[Service]) -> None:
        shipped = SHIPPED.read_text()
        places = iter(service.url.removeprefix("http://") for service in services)
        shipped, n_servers = re.subn(r"10\.0\.0\.\d+:8000", lambda _: next(places), shipped)
        port = free_port()
        shipped, n_ports = re.subn(r"listen 8080;", f"listen 127.0.0.1:{port};", shipped)
        assert (n_servers, n_ports) == (len(services), 1)
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder, shipped=shipped))
        assert PROGRAM is not None
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder
        self.process = subprocess.Popen(
            [PROGRAM, "-p", str(folder), "-c", str(folder / "nginx.conf")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(200):
            try:
                httpx.get(f"{self.url}/livez")
                return
            except httpx.TransportError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise AssertionError(f"nginx did not start: {self.stop()}")

    def stop(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=20)[0]

    def asked(self, name: str) -> list[str]:
        """Where the requests about a ranker went, one after the other; "one, other" where the first did not answer."""
        lines = (self._folder / "access.log").read_text().splitlines()
        return [line.split(" POST ")[0] for line in lines if f" POST /v1/rankers/{name}/" in line]


@pytest.fixture
def settings(postgresql: Server, fresh_schema: Callable[[], str]) -> list[str]:
    return ["--database", postgresql.url, "--schema", fresh_schema(), "--snapshot-every", "40"]


@pytest.fixture
def pair(settings: list[str]) -> Iterator[list[Service]]:
    with Service(*settings) as one, Service(*settings) as other:
        yield [one, other]


def test_one_ranker_one_replica_and_the_other_when_it_dies(
    pair: list[Service], settings: list[str], postgresql: Server, tmp_path: Path
) -> None:
    nginx = Nginx(tmp_path, pair)
    ledger = torture.Ledger()
    names = [torture.NAME, *(f"r{i}" for i in range(7))]
    try:
        client = Client(nginx.url, timeout=120.0, retries=0)
        for name in names:
            client.create(name, algorithm="RTop1F", items=torture.ITEMS)
        for i in range(6):
            for name in names[1:]:
                client.feedback(name, client.rank(name, decision_id=f"d{i}").decision_id, relevance=[1.0])
            ledger.do(client, "rank", {"decision_id": f"a{i}"})
        places = {name: nginx.asked(name) for name in names}
        assert all(len(set(asked)) == 1 and len(asked) >= 6 for asked in places.values()), places
        assert len({asked[0] for asked in places.values()}) == 2, "eight rankers, and all with one replica"

        # Its replica is killed: nobody who asks sees any of it.
        home = places[torture.NAME][0]
        dead = next(one for one in pair if one.url.endswith(home))
        dead.kill()
        for i in range(6):
            ledger.do(client, "feedback", {"decision_id": f"a{i}", "relevance": [1.0]})
            ledger.do(client, "rank", {"decision_id": f"b{i}"})
        assert not ledger.open
        assert home not in nginx.asked(torture.NAME)[-1]

        # It comes back, and gets back what it had.
        with Service(*settings, "--port", home.rpartition(":")[2]) as back:
            end = time.monotonic() + 30
            while nginx.asked(torture.NAME)[-1] != home and time.monotonic() < end:
                time.sleep(0.5)
                ledger.do(client, "rank", {"decision_id": f"c{len(ledger.lists)}"})
            assert nginx.asked(torture.NAME)[-1] == home
            assert back.client().ranker(torture.NAME).model_seq >= len(ledger.lists) + len(ledger.events)
            alive = next(one for one in pair if one is not dead)
            hashes = [torture._settled(one.client(), alive.client()) for one in (back, alive)]
            back.stop()
        alive.stop()
    finally:
        told = nginx.stop()
    assert torture.check(PostgresStore(postgresql.url, schema=settings[3]), ledger, hashes) == [], told


def test_without_affinity_nothing_is_wrong(
    pair: list[Service], settings: list[str], postgresql: Server, tmp_path: Path
) -> None:
    """The same with `hash` taken out: requests go to both in turn."""
    shipped = SHIPPED.read_text()
    plain = tmp_path / "plain.conf"
    plain.write_text(shipped.replace("    hash $rankloop_ranker consistent;\n", ""))
    assert plain.read_text() != shipped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.serving.test_nginx.SHIPPED", plain)
        nginx = Nginx(tmp_path, pair)
    ledger = torture.Ledger()
    try:
        client = Client(nginx.url, timeout=120.0, retries=0)
        client.create(torture.NAME, algorithm="RTop1F", items=torture.ITEMS)
        for i in range(40):
            ledger.do(client, "rank", {"decision_id": f"a{i}"})
            ledger.do(client, "feedback", {"decision_id": f"a{i}", "relevance": [float(i % 2)]})
        assert not ledger.open
        assert len(set(nginx.asked(torture.NAME))) == 2
        with httpx.Client(base_url=nginx.url) as plainly:
            bodies = [b"{}" * 5_000_000, b"{", b"[]"]
            told = [plainly.post(f"/v1/rankers/{torture.NAME}/rank", content=body) for body in bodies]
            assert [one.status_code for one in told] == [413, 415, 415]
            asked = {"Expect": "100-continue", "Content-Type": "application/json"}
            for i in range(20):
                url = f"/v1/rankers/{torture.NAME}/rank"
                shown = plainly.post(url, headers=asked, json={"decision_id": f"expected {i}"})
                assert shown.json()["decision_id"] == f"expected {i}"
            assert plainly.get("/readyz").status_code == 200
            with plainly.stream("GET", "/v1/stream", params={"ranker": torture.NAME}) as stream:
                assert next(stream.iter_text()).startswith("retry: 1000\n\nevent: health")
        hashes = [torture._settled(one.client(), pair[0].client()) for one in pair]
        for one in pair:
            one.stop()
    finally:
        told_by_nginx = nginx.stop()
    assert torture.check(PostgresStore(postgresql.url, schema=settings[3]), ledger, hashes) == [], (
        told_by_nginx
    )
