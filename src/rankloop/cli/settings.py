"""What commands share: options, declared once; what the shell offers after TAB; and where settings come from.

A setting of the service is a flag, else an environment variable, else in one TOML file, else the default.
`rankloop --install-completion` switches TAB on.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_origin, get_type_hints

import typer
from typer import Option
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.simulation.executors import Executor

Command = Callable[..., None]
RESEARCH = "Research"  # a heading of the help


# Commands that are no more, and what does the same.
_GONE = {
    "feed": "`python examples/feed_file.py` sends a file of feedback to a service",
    "consume": "`python examples/consume_redis.py` sends a stream of Redis to a service",
    "stream": "ask the service for GET /v1/rankers/RANKER/events?after=SEQ, as `python examples/pull_events.py` does",
    "move": "a ranker stays in its database; `rankloop backup` and `restore` move a whole one",
}


# Of the many options of `serve`: the others stand below them, under a heading.
_SHOWN_FIRST = {"data", "database", "host", "port", "users", "memory", "config"}


class Commands(TyperGroup):
    """Commands whose flags take no value and say so: `--quick`, where Typer would show `--quick <bool>`."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        _without_type(params)
        return params

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if cmd_name in _GONE:
            ctx.fail(f"there is no command {cmd_name!r} any more: {_GONE[cmd_name]}")
        if command is not None:
            for param in command.params:
                if cmd_name == "serve" and isinstance(param, TyperOption) and param.name not in _SHOWN_FIRST:
                    param.rich_help_panel = "More settings"
            _without_type([*command.params, command.get_help_option(ctx)])
        return command


def _without_type(params: Iterable[Any]) -> None:
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag and param.metavar is None:
            param.metavar = ""


def with_options(command: Command) -> Command:
    """Offer, for each dataclass among the parameters of `command`, its fields as options, in their place there.

    An Annotated field is an option; any other keeps its default.
    """
    own = inspect.signature(command, eval_str=True)
    structs = {
        name: _options(one.annotation) for name, one in own.parameters.items() if is_dataclass(one.annotation)
    }
    shown = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in own.parameters.items()
        for option in structs.get(name, [one])
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        for name, options in structs.items():
            chosen = {option.name: values.pop(option.name) for option in options}
            values[name] = own.parameters[name].annotation(**chosen)
        command(**values)

    wrapped.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {option.name: option.annotation for option in shown}
    return wrapped


def _options(struct: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(struct, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(struct)
        if get_origin(hints[field.name]) is Annotated
    ]


# What the shell offers after TAB. Whatever goes wrong while somebody types ends in no offer, not in a traceback.


def offer_rankers(incomplete: str) -> list[str]:
    """Names of rankers, those registered by other packages among them."""
    from rankloop.rankers import registry

    return _beginning(registry.names, incomplete)


def offer_environments(incomplete: str) -> list[str]:
    """Names of environments."""
    from rankloop.cli.library import environment_names

    return _beginning(lambda: list(environment_names()), incomplete)


def offer_measures(incomplete: str) -> list[str]:
    """Names of measures; of those that need a cut-off, the name with the sign that it follows."""
    from rankloop import measures

    def names() -> list[str]:
        return [name + ("@" if measures.get(name).cutoffs == "required" else "") for name in measures.names()]

    return _beginning(names, incomplete)


def offer_experiments(incomplete: str) -> list[str]:
    """Names of experiments, and `all`."""
    from rankloop import experiments

    return _beginning(lambda: [*experiments.names(), "all"], incomplete)


def _beginning(names: Callable[[], list[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in names() if name.lower().startswith(incomplete.lower())]
    except Exception:  # a broken package of somebody's must not break the prompt
        return []


# Options of several commands: of the library


class Where(StrEnum):
    """Where jobs run."""

    THREADS = "threads"
    PROCESSES = "processes"
    RAY = "ray"
    CUDA = "cuda"


JsonFlag = Annotated[bool, Option("--json", help="As JSON, for programs.")]
ResultAsJson = Annotated[bool, Option("--json", help="The result as JSON, for programs.")]
AnswerAsJson = Annotated[bool, Option("--json", help="The answer as JSON, for programs.")]
RankerOption = Annotated[
    str,
    Option(
        help="A ranker, see [b]rankloop list rankers[/b], or one of yours: package.module:Class.",
        autocompletion=offer_rankers,
    ),
]


def measure_option(default: str) -> Any:
    """How rankings are measured; `default` says how where nothing is said."""
    words = "The measure of a ranking, such as dcg or precision@3."
    return Option(help=words, show_default=default, autocompletion=offer_measures)


CountOption = Annotated[int, Option(help="Number of items.")]
ItemsOption = Annotated[
    int | None, Option(help="Number of items.", show_default="10, or those that the environment has")
]
TopOption = Annotated[int, Option(help="How many items, from the top, reveal their relevance.")]
GradesOption = Annotated[int, Option(help="Number of grades: 2 for relevance 0 and 1.")]
RunsAtOnce = Annotated[int | None, Option(help="Runs to play at once.", show_default="one for each core")]
FirstPosition = Annotated[int, Option(help="What a table calls the top position.")]
WhereOption = Annotated[
    Where, Option("--executor", help="Where jobs run. It changes how long they take, and no result.")
]
AddressOption = Annotated[
    str | None,
    Option(
        metavar="HOST:PORT",
        help="The Ray cluster, for [b]--executor ray[/b].",
        show_default="RAY_ADDRESS, or one that is started on this machine",
    ),
]


def check_address(where: Where, address: str | None) -> None:
    """ValueError where an address has no use."""
    if address is not None and where is not Where.RAY:
        raise ValueError(f"--address is of --executor ray, got {address!r} with --executor {where}")


@contextmanager
def started(where: Where, address: str | None, *, workers: int | None) -> Iterator[str | Executor]:
    """What `executor=` takes, once for several calls; workers end on the way out."""
    check_address(where, address)
    if where in (Where.THREADS, Where.CUDA):
        yield str(where)
        return
    from rankloop.simulation.executors import Processes, RayCluster

    chosen = Processes(workers) if where is Where.PROCESSES else RayCluster(address, workers=workers)
    with chosen as executor:
        yield executor


def plain_console() -> Console:
    """Standard output, without colours for numbers."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False)


def say(console: Console, words: str) -> None:
    """A line as it is: neither cut at the width of the terminal, nor read as markup."""
    console.print(words, soft_wrap=True, markup=False)


def named_values(option: str, texts: Iterable[str], *, form: str) -> Iterator[tuple[str, str]]:
    """Names and values from texts such as NAME=VALUE; `form` says what they look like.

    >>> list(named_values("--columns", ["item=sku"], form="OURS=THEIRS, such as item=sku"))
    [('item', 'sku')]
    """
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{option} must be {form}, got {text!r}")
        yield name, value


def read_values(option: str, texts: Iterable[str] | None) -> dict[str, Any]:
    """Values by name from texts such as KEY=VALUE; a value is JSON, or text where it is none.

    >>> read_values("--set", ["k=2", "measure=sum_loss"])
    {'k': 2, 'measure': 'sum_loss'}
    """
    values: dict[str, Any] = {}
    for name, value in named_values(option, texts or (), form="KEY=VALUE"):
        try:
            values[name] = json.loads(value)
        except json.JSONDecodeError:
            values[name] = value
    return values


@contextmanager
def interruption_told(words: str) -> Iterator[None]:
    """Ctrl-C meanwhile is followed by a line that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{words}", err=True)
        raise


# Options of several commands: of the service

PREFIX = "RANKLOOP_SERVE_"
FILE = Path("rankloop.toml")
DATA = Path("rankloop-data")
_LIMITS = "limits"
_NOT_IN_A_FILE = {"config", "help", "limit"}  # limits have a table of their own


def variable(name: str) -> str:
    """The environment variable of a setting.

    >>> variable("snapshot_every")
    'RANKLOOP_SERVE_SNAPSHOT_EVERY'
    """
    return PREFIX + name.upper()


def service_option(name: str, words: str, *flags: str, **more: Any) -> Any:
    """An option that can be set by its environment variable, too."""
    return Option(*flags, help=words, envvar=variable(name), show_envvar=False, **more)


def _read_file(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take what the file says as defaults of this command; wrong names are refused with those there are."""
    file = path if path is not None else FILE
    if path is None and not file.exists():
        return None
    try:
        settings = tomllib.loads(file.read_text())
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} is not TOML: {error}") from None
    limits = settings.pop(_LIMITS, {})
    if not isinstance(limits, dict):
        raise typer.BadParameter(f"{file}: limits must be a table, got {limits!r}")
    names = _names(_serve(ctx))
    for name in settings:
        if name not in names:
            there = ", ".join([*sorted(names), f"[{_LIMITS}]"])
            raise typer.BadParameter(f"{file}: there is no setting {name!r}; there are {there}")
    mine = _names(ctx.command)
    # A flag of the same name may mean something else in another command.
    many = {param.name for param in ctx.command.params if getattr(param, "multiple", False)}
    ctx.default_map = {
        names[name]: [value] if names[name] in many and isinstance(value, str) else value
        for name, value in settings.items()
        if mine.get(name) == names[name]
    }
    ctx.meta[_LIMITS] = [f"{name}={value}" for name, value in limits.items()]
    return file


def _serve(ctx: typer.Context) -> Any:
    root = ctx.find_root()
    command = getattr(root.command, "get_command", lambda *_: None)(root, "serve")
    return ctx.command if command is None else command


def _names(command: Any) -> dict[str, str]:
    """The name of each setting in a file, and of the parameter that it is here."""
    names = {}
    for param in command.params:
        name = param.opts[0].lstrip("-").replace("-", "_")
        if param.opts[0].startswith("--") and name not in _NOT_IN_A_FILE:
            names[name] = param.name
    return names


DataOption = Annotated[Path, service_option("data", "Folder of the SQLite store.")]
DatabaseOption = Annotated[
    list[str] | None,
    service_option(
        "database",
        "A PostgreSQL database instead of a folder.",
        metavar="URL",
    ),
]
SchemaOption = Annotated[str, service_option("schema", "Schema of the database that the tables are in.")]
SegmentsOption = Annotated[
    Path | None,
    service_option(
        "segments",
        "Folder of the segments with closed history; with a database, one that all replicas reach.",
        metavar="FOLDER",
        show_default="segments, in the folder of the SQLite store",
    ),
]
UrlOption = Annotated[
    str | None,
    Option(
        "--url", help="Send it to a running service, instead of writing to its store.", show_default=False
    ),
]
KeyOption = Annotated[
    str | None, Option("--key", help="An API key of an admin.", envvar="RANKLOOP_KEY", show_default=False)
]
ConfigOption = Annotated[
    Path | None,
    Option(
        "--config",
        metavar="FILE",
        envvar="RANKLOOP_CONFIG",
        is_eager=True,
        callback=_read_file,
        show_envvar=False,
        help="TOML with settings; flags and variables count first.",
        show_default="rankloop.toml, if it is there",
    ),
]
AllowOption = Annotated[
    list[str] | None,
    Option(
        "--ranker",
        metavar="PACKAGE.MODULE:CLASS",
        help="A ranker of your own that may be used; repeatable. Registered ones need no mention.",
    ),
]


# Where the settings of a service come from


class Setting(NamedTuple):
    """One setting: its name in the file, its value, and where the value comes from."""

    name: str
    value: Any
    source: str


def limit_settings(ctx: typer.Context, flags: list[str] | None) -> dict[str, tuple[str, str]]:
    """Each limit that is set: its number as text, and where that comes from; one by one, flags count first."""
    limits: dict[str, tuple[str, str]] = {}
    for source, settings in (
        ("file", ctx.meta.get(_LIMITS, [])),
        (variable("limit"), os.environ.get(variable("limit"), "").split()),
        ("flag", flags or []),
    ):
        for setting in settings:
            name, _, number = setting.partition("=")
            limits[name] = (number, source)
    return limits


def settings_of(ctx: typer.Context) -> list[Setting]:
    """All settings of a command, with their sources; secrets are hidden."""
    names = {parameter: name for name, parameter in _names(_serve(ctx)).items()}
    settings = []
    for param in ctx.command.params:
        if (name := names.get(param.name)) is not None:
            value = hidden(name, ctx.params[param.name])
            settings.append(Setting(name, value, _source(ctx, param.name, name)))
    return settings


def _source(ctx: typer.Context, parameter: str, name: str) -> str:
    source = ctx.get_parameter_source(parameter)
    return {"COMMANDLINE": "flag", "ENVIRONMENT": variable(name), "DEFAULT_MAP": "file"}.get(
        source.name if source is not None else "", "default"
    )


def hidden(name: str, value: Any) -> Any:
    """The value as it may be shown: a database without its password; one of several that may be given, as itself.

    >>> hidden("database", "postgresql://me:secret@host/name?password=other&sslmode=require")
    'postgresql://me:***@host/name?password=***&sslmode=require'
    """
    if name != "database" or value is None:
        return value
    if not isinstance(value, str):
        shown = [hidden(name, one) for one in value]
        return shown[0] if len(shown) == 1 else shown or None
    value = re.sub(r"://([^:/@]*):.*@", r"://\1:***@", value)
    return re.sub(r"(password=)[^&]*", r"\1***", value)


def as_toml(value: Any) -> str:
    """A value of a setting as TOML writes it.

    >>> as_toml(["a", "b"]), as_toml(True), as_toml(2.5), as_toml(Path("here"))
    ('["a", "b"]', 'true', '2.5', '"here"')
    """
    return json.dumps(value if isinstance(value, int | float | list) else str(value), ensure_ascii=False)
