"""The command `rankloop`: a thin layer. Each command imports what it needs when it is called, so that help is quick."""

from __future__ import annotations

import functools
from typing import Annotated, Any, NoReturn

import typer
from typer import Option

from rankloop import __version__
from rankloop.cli import clicks, games, library, papers, service_data, service_run, suite
from rankloop.cli.service_store import served
from rankloop.cli.settings import Command, Commands, with_options
from rankloop.extras import MissingExtra

app = typer.Typer(
    name="rankloop",
    cls=Commands,
    help="Rank lists and learn from partial feedback: simulate, reproduce papers, serve.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# In the order of the help.
_OFFLINE: dict[str, Command] = {
    "reproduce": papers.reproduce,
    "list": library.list_things,
    "simulate": library.simulate,
    "fit-clicks": clicks.fit_clicks,
    "advise": library.advise,
    "tune": library.tune,
    "evaluate": clicks.evaluate,
    "classify": games.classify,
    "verify-proof": games.verify_proof,
    "rates": games.rates,
    "claims": papers.claims,
    "warm": library.warm,
    "demo": library.demo,
}
_OF_THE_SERVICE: dict[str, Command] = {
    "serve": service_run.serve,
    "config": service_run.show_config,
    "create": service_run.create,
    "rankers": service_run.rankers,
    "verify": service_data.verify,
    "accept-loss": service_data.accept_loss,
    "upgrade": service_data.upgrade,
    "backup": service_data.backup,
    "restore": service_data.restore,
    "trim": service_data.trim,
    "erase": service_data.erase,
    "export": service_data.export,
    "import": service_data.import_,
    "replay": service_data.replay,
    "delete": service_run.delete,
    "keys": service_run.keys,
}


def in_words(command: Command) -> Command:
    """A caller's mistake ends in a sentence and code 2, Ctrl-C in a sentence and code 130; neither in a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, MissingExtra) as error:
            _fail(str(error))
        except BrokenPipeError:  # whoever read the output has enough
            raise
        except MemoryError as error:
            _fail(f"not enough memory for this: {str(error) or 'choose smaller numbers'}")
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except KeyboardInterrupt:
            typer.echo("\nInterrupted.", err=True)
            raise typer.Exit(130) from None

    return wrapped


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankloop {__version__}")
        raise typer.Exit


@app.callback()
def _rankloop(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _name, _command in _OFFLINE.items():
    app.command(_name)(in_words(with_options(_command)))
for _name, _command in _OF_THE_SERVICE.items():
    app.command(_name)(in_words(served(with_options(_command))))
suite.register(app, in_words)
