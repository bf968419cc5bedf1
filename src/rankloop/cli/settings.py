"""Settings of the service's commands: a flag, else an environment variable, else one TOML file, else the default."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

PREFIX = "RANKLOOP_SERVE_"
FILE = Path("rankloop.toml")
_LIMITS = "limits"
_NOT_IN_A_FILE = {"config", "help", "limit"}  # limits have a table of their own


class Setting(NamedTuple):
    """One setting: its name in the file, its value, and where the value comes from."""

    name: str
    value: Any
    source: str


def variable(name: str) -> str:
    """The environment variable of a setting.

    >>> variable("snapshot_every")
    'RANKLOOP_SERVE_SNAPSHOT_EVERY'
    """
    return PREFIX + name.upper()


def _read_file(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take what the file says as defaults of this command; wrong names are refused with those there are."""
    given = path if path is not None else FILE
    if path is None and not given.exists():
        return None
    try:
        told = tomllib.loads(given.read_text())
    except OSError as error:
        raise typer.BadParameter(f"{given}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{given} is not TOML: {error}") from None
    limits = told.pop(_LIMITS, {})
    if not isinstance(limits, dict):
        raise typer.BadParameter(f"{given}: limits must be a table, got {limits!r}")
    names = _names(_serve(ctx))
    for name in told:
        if name not in names:
            there = ", ".join([*sorted(names), f"[{_LIMITS}]"])
            raise typer.BadParameter(f"{given}: there is no setting {name!r}; there are {there}")
    mine = _names(ctx.command)
    # A flag of the same name may mean something else in another command.
    many = {param.name for param in ctx.command.params if getattr(param, "multiple", False)}
    ctx.default_map = {
        names[name]: [value] if names[name] in many and isinstance(value, str) else value
        for name, value in told.items()
        if mine.get(name) == names[name]
    }
    ctx.meta[_LIMITS] = [f"{name}={value}" for name, value in limits.items()]
    return given


def _serve(ctx: typer.Context) -> Any:
    root = ctx.find_root()
    command = getattr(root.command, "get_command", lambda *_: None)(root, "serve")
    return ctx.command if command is None else command


def _names(command: Any) -> dict[str, str]:
    """The name of each setting in a file, and of the parameter that it is here."""
    found = {}
    for param in command.params:
        name = param.opts[0].lstrip("-").replace("-", "_")
        if param.opts[0].startswith("--") and name not in _NOT_IN_A_FILE:
            found[name] = param.name
    return found


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="RANKLOOP_CONFIG",
        is_eager=True,
        callback=_read_file,
        help="A TOML file with settings; flags and environment variables count before it.",
        show_default="rankloop.toml, where it is there",
    ),
]


def limit_settings(ctx: typer.Context, flags: list[str] | None) -> dict[str, tuple[str, str]]:
    """Each limit that is set: its number as text, and where that comes from; one by one, flags count first."""
    found: dict[str, tuple[str, str]] = {}
    given = os.environ.get(variable("limit"), "").split()
    for source, settings in (
        ("file", ctx.meta.get(_LIMITS, [])),
        (variable("limit"), given),
        ("flag", flags or []),
    ):
        for setting in settings:
            name, _, number = setting.partition("=")
            found[name] = (number, source)
    return found


def settings_of(ctx: typer.Context) -> list[Setting]:
    """All settings of a command, with their sources; secrets are hidden."""
    names = {parameter: name for name, parameter in _names(_serve(ctx)).items()}
    told = []
    for param in ctx.command.params:
        if param.name in names:
            name, value = names[param.name], ctx.params[param.name]
            told.append(Setting(name, hidden(name, value), _source(ctx, param, name)))
    return told


def _source(ctx: typer.Context, param: Any, name: str) -> str:
    found = ctx.get_parameter_source(param.name)
    return {"COMMANDLINE": "flag", "ENVIRONMENT": variable(name), "DEFAULT_MAP": "file"}.get(
        found.name if found is not None else "", "default"
    )


def hidden(name: str, value: Any) -> Any:
    """The value as it may be shown: a database without its password; one of several that may be given, as itself.

    >>> hidden("database", "postgresql://me:secret@host/name?password=other&sslmode=require")
    'postgresql://me:***@host/name?password=***&sslmode=require'
    """
    if name != "database" or value is None:
        return value
    if not isinstance(value, str):
        found = [hidden(name, one) for one in value]
        return found[0] if len(found) == 1 else found or None
    value = re.sub(r"://([^:/@]*):.*@", r"://\1:***@", value)
    return re.sub(r"(password=)[^&]*", r"\1***", value)


def as_toml(value: Any) -> str:
    """A value of a setting as TOML writes it.

    >>> as_toml(["a", "b"]), as_toml(True), as_toml(2.5), as_toml(Path("here"))
    ('["a", "b"]', 'true', '2.5', '"here"')
    """
    return json.dumps(value if isinstance(value, int | float | list) else str(value), ensure_ascii=False)
