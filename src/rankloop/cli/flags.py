"""Flags shown as flags: `--quick`, where Typer would show `--quick <bool>`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperGroup, TyperOption


class Commands(TyperGroup):
    """The commands of `rankloop`, whose flags take no value and say so."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        _without_type(params)
        return params

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_type([*command.params, command.get_help_option(ctx)])
        return command


def _without_type(params: Iterable[Any]) -> None:
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag and param.metavar is None:
            param.metavar = ""
