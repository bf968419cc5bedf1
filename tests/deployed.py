"""Run what is in `deploy/`, and print what happened: the image, the container of the chart, the unit. `make deployed`.

It needs root and podman. Where no registry can be reached, `--base` names an image with Debian's Python 3.11. Networks
are the machine's own, on loopback.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.serving.postgresql import Server, start
from tests.serving.process import free_port
from tests.test_deploy import DEPLOY, rendered

ROOT = DEPLOY.parent
IMAGE, MACHINE = "localhost/rankloop", "localhost/rankloop-systemd"
# Inside the image: what a service needs, and what it must not need.
INSPECT = """
import importlib.metadata, importlib.util, re, shutil
pinned = dict(line.split()[0].split("==") for line in open("/lock") if "==" in line)
normal = lambda name: re.sub("[-_.]+", "-", name).lower()
there = {normal(one.metadata["Name"]): one.version for one in importlib.metadata.distributions()}
others = {name for name, version in there.items() if pinned.get(name) != version} - {"pip", "rankloop", "setuptools"}
print("packages as in the lock:", len(there) - len(others) - 3, "others:", sorted(others) or "none")
print("compilers:", [one for one in ("cc", "gcc", "clang", "ld") if shutil.which(one)] or "none",
      "numba:", bool(importlib.util.find_spec("numba")))
assert not others and all(map(importlib.util.find_spec, ("cryptography", "opentelemetry", "pyarrow", "scipy")))
"""
# A client: rankers of several kinds, lists, feedback. Arguments: the address, what the lists are called, how many.
CLIENT = """
import sys, time
from rankloop import Client
client, called, n = Client(sys.argv[1], key=sys.argv[2] or None), sys.argv[3], int(sys.argv[4])
kinds = {"TopFTRL": {}, "RTop1F": {}} | dict.fromkeys(("FTRLPBM", "PBMTS", "CascadeKLUCB"), {"n_positions": 3})
slowest = 0.0
for algorithm, parameters in kinds.items():
    client.create(algorithm, algorithm=algorithm, items=list("abcdef"), parameters=parameters, seed=1)
    for i in range(n):
        begun = time.perf_counter()
        shown = client.rank(algorithm, decision_id=f"{called}-{i}")
        clicked = [shown.items[0]] if i % 3 else []
        told = client.feedback(algorithm, shown.decision_id, clicked=clicked, event_id=f"{called}-{i}")
        slowest = max(slowest, time.perf_counter() - begun)
rounds = {one: client.ranker(one).rounds for one in kinds}
print(f"{n} lists with feedback for each of {len(kinds)} rankers, slowest {slowest * 1000:.0f} ms; rounds {rounds}")
"""


def main() -> None:
    """What the command does."""
    parser = argparse.ArgumentParser(description="Run what is in deploy/.")
    parser.add_argument(
        "--base", help="an image with Python 3.11 to build on, instead of the one in Containerfile"
    )
    parser.add_argument("--no-build", action="store_true", help="take the image that is there")
    parser.add_argument(
        "--build-option", action="append", default=[], help="a word for podman build; may be repeated"
    )
    arguments = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("podman") is None:
        raise SystemExit("nothing was run: this needs root and podman (Debian: apt install podman)")
    if not arguments.no_build:
        base = ["--build-arg", f"BASE={arguments.base}"] if arguments.base else []
        begun = time.monotonic()
        words = [*arguments.build_option, *base, "-t", IMAGE, "-f", "deploy/Containerfile", "."]
        run("podman", "build", "--network", "host", *words, cwd=ROOT)
        tell(f"image built in {time.monotonic() - begun:.0f} s")
    the_image()
    the_chart()
    the_unit()


def the_image() -> None:
    """A read-only root, a user of its own, a volume: rank, kill, start again, verify."""
    tell(f"\nThe image, {int(run('podman', 'image', 'inspect', '-f', '{{.Size}}', IMAGE)) / 1e6:.0f} MB")
    lock = f"{ROOT / 'requirements-dev.lock'}:/lock:ro"
    tell(run("podman", "run", "--rm", "-v", lock, "--entrypoint", "python", IMAGE, "-c", INSPECT))
    port, volume = free_port(), f"rankloop-{os.getpid()}"
    options = [
        *("--network", "host", "-e", f"RANKLOOP_SERVE_PORT={port}", "-v", f"{volume}:/data"),
        *("--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp"),
        *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
    ]
    try:
        lives_and_dies(port, options, [])
        tell(run("podman", "run", "--rm", *options, IMAGE, "verify"))
    finally:
        quietly("podman", "volume", "rm", "-f", volume)


def the_chart() -> None:
    """The container that the chart's Deployment describes, on a PostgreSQL of its own."""
    tell(
        "\nThe chart's container, its Deployment rendered with the values of the chart (helm itself was not run)"
    )
    folder = DEPLOY / "helm/rankloop"
    values = yaml.safe_load((folder / "values.yaml").read_text())
    with database() as server, listening_at(server) as url:
        values["port"] = free_port()
        pod = rendered((folder / "templates/deployment.yaml").read_text(), values)["spec"]["template"]["spec"]
        options, words = as_options(pod, {"rankloop-database": {"database": url}})
        tell(
            "podman run "
            + " ".join("postgresql://..." if url in one else one for one in options if one != "-e")
        )
        # What a key is made with is what the service is run with.
        lives_and_dies(values["port"], options, words)
        tell(run("podman", "run", "--rm", *options, IMAGE, "verify", "--database", url))


def as_options(pod: dict[str, Any], secrets: dict[str, dict[str, str]]) -> tuple[list[str], list[str]]:
    """The options of `podman run` for the one container of a pod, and the words after the image."""
    (container,) = pod["containers"]
    user, mine = pod["securityContext"], container["securityContext"]
    assert user["runAsNonRoot"]
    assert mine["readOnlyRootFilesystem"]
    assert not mine["allowPrivilegeEscalation"]
    options = ["--network", "host", "--user", f"{user['runAsUser']}:{user['fsGroup']}"]
    options += ["--read-only", "--read-only-tmpfs=false", "--security-opt", "no-new-privileges"]
    options += ["--cap-drop", *(one.lower() for one in mine["capabilities"]["drop"])]
    for one in container["env"]:
        found = one.get("valueFrom", {}).get("secretKeyRef")
        value = secrets[found["name"]][found["key"]] if found else one["value"]
        options += ["-e", f"{one['name']}={value}"]
    empty = {one["name"] for one in pod["volumes"] if "emptyDir" in one}
    for one in container["volumeMounts"]:
        assert one["name"] in empty
        options += ["--tmpfs", one["mountPath"]]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in ("/livez", "/readyz")
    return options, container["args"]


def lives_and_dies(port: int, options: list[str], words: list[str]) -> None:
    """Make a key, serve, rank, SIGKILL, serve, rank: what was acknowledged is there."""
    name, url = f"rankloop-{os.getpid()}", f"http://127.0.0.1:{port}"
    told = run("podman", "run", "--rm", *options, IMAGE, "keys", "add", "--role", "admin", "--new-store")
    key = next(word for word in told.split() if word.startswith("rl_"))

    def client(called: str, n: int) -> str:
        return run("podman", "exec", "-i", name, "python", "-", url, key, called, str(n), given=CLIENT)

    try:
        run("podman", "run", "-d", "--name", name, *options, IMAGE, *words)
        tell(f"ready after {seconds_until_ready(url):.1f} s; {processes(name)}")
        tell(client("first", 50))
        with suppress(subprocess.CalledProcessError):
            run("podman", "exec", name, "touch", "/opt/rankloop/new")
            raise SystemExit("the root can be written to")
        run("podman", "kill", "-s", "KILL", name)
        run("podman", "wait", name)
        run("podman", "start", name)
        tell(f"killed with SIGKILL and started again: ready after {seconds_until_ready(url):.1f} s")
        tell(client("first", 50) + " (the same lists and events once more: none counts twice)")
        tell(client("second", 50))
        tell(f"memory {memory(name)} MB; stopped: {run('podman', 'stop', '-t', '30', name) == name}")
    except BaseException:
        quietly("podman", "logs", "--tail", "20", name, show=True)
        raise
    finally:
        quietly("podman", "rm", "-f", "-t", "0", name)


def the_unit() -> None:
    """The unit under a systemd of its own, as the first process of a container that may mount."""
    tell("\nThe unit, under systemd")
    with tempfile.TemporaryDirectory() as folder:
        # What systemd needs, and the virtual environment where the unit expects it: it is there already.
        Path(folder, "Containerfile").write_text(
            f"FROM {IMAGE}\nUSER root\n"
            "RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd\n"
            "COPY rankloop.service /etc/systemd/system/\nRUN systemctl enable rankloop\nENTRYPOINT []\n"
        )
        shutil.copy(DEPLOY / "systemd/rankloop.service", folder)
        run("podman", "build", "--network", "host", "-t", MACHINE, folder)
    name, port = f"rankloop-unit-{os.getpid()}", free_port()
    url = f"http://127.0.0.1:{port}"

    def inside(*words: str, given: str | None = None) -> str:
        return run("podman", "exec", *(["-i"] if given else []), name, *words, given=given)

    def client(called: str, n: int) -> str:
        return inside("/opt/rankloop/bin/python", "-", url, "", called, str(n), given=CLIENT)

    with ExitStack() as then:
        then.callback(quietly, "podman", "rm", "-f", "-t", "0", name)
        settings = Path(then.enter_context(tempfile.TemporaryDirectory()), "rankloop.toml")
        settings.write_text(f"port = {port}\n")
        settings.parent.chmod(0o755)
        given = [
            "--network",
            "host",
            "--privileged",
            "--systemd=always",
            "-v",
            f"{settings.parent}:/etc/rankloop:ro",
        ]
        run("podman", "run", "-d", "--name", name, *given, MACHINE, "/lib/systemd/systemd")
        try:
            waited = seconds_until_ready(url)
        except TimeoutError:
            quietly("podman", "exec", name, "systemctl", "status", "-l", "--no-pager", "rankloop", show=True)
            quietly("podman", "exec", name, "journalctl", "-n", "30", "--no-pager", show=True)
            raise
        tell(f"ready after {waited:.1f} s")
        shown = inside(
            "systemctl", "show", "rankloop", "-p", "DynamicUser,ProtectSystem,PrivateTmp,StateDirectory"
        )
        tell(", ".join(sorted(shown.split())))
        tell(
            inside(
                "sh", "-c", "ls -ld /var/lib/private/rankloop; ls /var/lib/private/rankloop | tr '\\n' ' '"
            )
        )
        tell(client("first", 50))
        inside("systemctl", "kill", "-s", "KILL", "rankloop")
        time.sleep(1.0)
        tell(
            f"killed with SIGKILL; systemd started it again: ready after {1 + seconds_until_ready(url):.1f} s"
        )
        tell(client("first", 50) + " (the same once more)")
        tell(inside("/opt/rankloop/bin/rankloop", "verify", "--data", "/var/lib/private/rankloop"))
        inside("systemctl", "stop", "rankloop")
        tell("stopped: " + inside("systemctl", "show", "rankloop", "-p", "Result"))


@contextmanager
def database() -> Iterator[Server]:
    """A PostgreSQL of its own, in a temporary folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        server = start(Path(folder) / "pg")
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def listening_at(server: Server) -> Iterator[str]:
    """The address of a server that listens on its socket only, made to listen on loopback as well."""
    port = free_port()
    server.sql("ALTER SYSTEM SET listen_addresses = '127.0.0.1'")
    server.sql(f"ALTER SYSTEM SET port = {port}")
    server.stop()
    options = f"-k {server.folder}"
    server.run(
        "pg_ctl",
        "-D",
        str(server.folder / "data"),
        "-w",
        "-o",
        options,
        "-l",
        str(server.folder / "log"),
        "start",
    )
    yield f"postgresql://rankloop@127.0.0.1:{port}/postgres"


def seconds_until_ready(url: str, most: float = 120.0) -> float:
    """How long `/readyz` does not say 200."""
    begun = time.monotonic()
    while time.monotonic() < begun + most:
        with (
            suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer,
        ):
            if answer.status == 200:
                return time.monotonic() - begun
        time.sleep(0.05)
    raise TimeoutError(f"not ready after {most:g} s")


def processes(name: str) -> str:
    """Who runs in a container, and where it may write."""
    status = run("podman", "exec", name, "cat", "/proc/1/status").splitlines()
    fields = dict(line.split(":", 1) for line in status)
    mounts = [line.split() for line in run("podman", "exec", name, "cat", "/proc/mounts").splitlines()]
    root = next(one[3].split(",")[0] for one in mounts if one[1] == "/")
    return f"uid {fields['Uid'].split()[0]}, capabilities {int(fields['CapEff'], 16):x}, root mounted {root}"


def memory(name: str) -> int:
    """Megabytes of the first process of a container."""
    status = run("podman", "exec", name, "cat", "/proc/1/status")
    return next(int(line.split()[1]) // 1000 for line in status.splitlines() if line.startswith("VmRSS"))


def run(*command: str, given: str | None = None, cwd: Path | None = None) -> str:
    """Run a command, and give back what it said; what it said in error where it fails."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        if "touch" not in command:
            print(done.stdout[-3_000:], done.stderr[-3_000:], file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout.strip()


def quietly(*command: str, show: bool = False) -> None:
    """Run a command, whatever comes of it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if show:
        print(done.stdout, done.stderr, file=sys.stderr)


def tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
