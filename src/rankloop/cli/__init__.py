"""The command `rankloop`: a thin layer. Each command imports what it needs when it is called, so that help is quick."""

from __future__ import annotations

import functools
from typing import Annotated, Any, NoReturn

import typer
from typer import Option

from rankloop import __version__
from rankloop.cli import clicks, games, library, papers, service_data, service_run, suite
from rankloop.cli.service_store import served
from rankloop.cli.settings import RESEARCH, Command, Commands, with_options
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

# In the order of the help, by its headings.
_COMMANDS: dict[str, dict[str, Command]] = {
    "Start": {
        "demo": library.demo,
        "list": library.list_things,
        "advise": library.advise,
        "simulate": library.simulate,
    },
    "Serve and operate": {
        "serve": service_run.serve,
        "create": service_run.create,
        "rankers": service_run.rankers,
        "keys": service_run.keys,
        "config": service_run.show_config,
        "verify": service_data.verify,
        "backup": service_data.backup,
        "restore": service_data.restore,
        "upgrade": service_data.upgrade,
        "trim": service_data.trim,
        "erase": service_data.erase,
        "delete": service_run.delete,
        "accept-loss": service_data.accept_loss,
    },
    "Data and logs": {
        "fit-clicks": clicks.fit_clicks,
        "judgments": clicks.judgments,
        "evaluate": clicks.evaluate,
        "export": service_data.export,
        "export-model": service_data.export_model,
        "import": service_data.import_,
        "replay": service_data.replay,
    },
    RESEARCH: {
        "reproduce": papers.reproduce,
        "tune": library.tune,
        "atlas": suite.atlas,
        "classify": games.classify,
        "rates": games.rates,
        "verify-proof": games.verify_proof,
        "claims": papers.claims,
        "warm": library.warm,
    },
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


for _panel, _group in _COMMANDS.items():
    for _name, _command in _group.items():
        _run = with_options(_command)
        if _command.__module__ in (service_run.__name__, service_data.__name__):
            _run = served(_run)
        app.command(_name, rich_help_panel=_panel)(in_words(_run))
suite.register(app, in_words)
