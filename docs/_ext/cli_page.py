"""Writes the page of the command line: `python docs/_ext/cli_page.py > docs/cli.md`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import typer

from rankloop import cli

Options = list[tuple[str, str]]
# Of so many commands an option is described once.
_SHARED = 4
_EXAMPLES = "[b]Examples[/b]"


def page() -> Iterator[str]:
    """The lines of the page."""
    group = typer.main.get_command(cli.app)
    assert isinstance(group, typer.main.TyperGroup)
    context = typer.Context(group)
    panels, commands = {}, {}
    for panel, name, command in _commands(group, context):
        panels[name], commands[name] = panel, command
    options = {name: _records(command, context, "option") for name, command in commands.items()}
    counts = Counter(one for own in options.values() for one in own)
    shared = [one for one, count in counts.items() if count >= _SHARED]

    yield from ("# Command line", "", _marked(group.help or ""), "")
    for panel, names in groupby(commands, key=panels.__getitem__):
        listed = (f"[`{name}`](#rankloop-{name.replace(' ', '-')})" for name in names)
        yield f"- **{panel}**: {', '.join(listed)}"
    yield from (
        "",
        "`rankloop COMMAND --help` prints each section of this page. `rankloop --version` prints the version.",
    )
    yield from ("", "Options of several commands, which their sections only name:", "", *_listed(shared), "")
    for name, command in commands.items():
        text, _, examples = (command.help or "").partition(_EXAMPLES)
        yield from (f"## `rankloop {name}`", "", _marked(text.strip()), "")
        calls = [line.strip() for line in examples.splitlines() if line.strip()]
        if calls:
            yield from ("```sh", *calls, "```", "")
        arguments = _records(command, context, "argument")
        own = [one for one in options[name] if one not in shared]
        yield from _listed(arguments + own)
        also = ", ".join(f"`{_short(flag)}`" for flag, help_ in options[name] if (flag, help_) in shared)
        yield from ([f"* also {also}", ""] if also else [""])


def _commands(
    group: typer.main.TyperGroup, context: typer.Context
) -> Iterator[tuple[str, str, typer.core.TyperCommand]]:
    """The heading, the name and the command itself, those within a group too."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, typer.main.TyperGroup):
            yield from (
                (command.rich_help_panel, f"{name} {inner}", one)
                for _, inner, one in _commands(command, context)
            )
        else:
            yield command.rich_help_panel, name, command


def _records(command: typer.core.TyperCommand, context: typer.Context, kind: str) -> Options:
    records = [
        one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind
    ]
    return [(name, help_) for name, help_ in filter(None, records) if "--help" not in name]


def _listed(options: Options) -> Iterator[str]:
    for name, text in options:
        yield f"* `{name}`: {_marked(text)}" if text else f"* `{name}`"


def _short(flag: str) -> str:
    return re.split(r"[ ,]", flag)[0]


def _marked(text: str) -> str:
    """The text as Markdown: bold is a command or an option."""
    text = re.sub(r"([*_<])", r"\\\1", text)
    return re.sub(r"\[b\](.*?)\[/b\]", lambda found: f"`{found[1].replace(chr(92), '')}`", text, flags=re.S)


if __name__ == "__main__":
    print("\n".join(page()), end="")
