"""The group of all commands, which imports the module of a command when the command is used.

A command such as `serve` imports web servers and agents, which takes longer than `limelight --help` may take.
"""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class LazyCommand(NamedTuple):
    """A command by its name in `limelight.cli`: its module, and the function or the `Typer` of that name in it."""

    name: str
    module: str
    summary: str
    """The first line of its help, for the list of commands."""


COMMANDS = (
    LazyCommand("serve", "serve", "Serve agents over HTTP."),
    LazyCommand("run", "run", "Ask an agent and watch it work."),
    LazyCommand("watch", "watch", "Show a session live from its beginning."),
    LazyCommand("approve", "approve", "Decide on an approval request for which a run waits."),
    LazyCommand("sessions", "sessions", "List sessions, last active first."),
    LazyCommand("export", "export", "Write a run as JSON lines to standard output."),
    LazyCommand("replay", "export", "Show an exported run at its original speed."),
    LazyCommand("understudy", "understudy", "Serve the offline model on this machine."),
    LazyCommand("backup", "backup", "Back up the data folder."),
    LazyCommand("restore", "backup", "Create a data folder from a backup."),
    LazyCommand("doctor", "doctor", "Check the settings and everything that they need."),
    LazyCommand("openwebui", "openwebui", "Show agents in Open WebUI."),
    LazyCommand("keys", "api_keys", "Create, list and revoke API keys."),
    LazyCommand("retention", "retention", "Show what retention keeps, and confirm the clock."),
)


class CommandGroup(TyperGroup):
    """The group of `limelight`. It has a placeholder for each command until the command is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._lazy = {command.name: command for command in COMMANDS}
        for command in COMMANDS:
            self.add_command(TyperCommand(command.name, help=command.summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.load(name), rest

    def load(self, name: str) -> Any:
        """Import a command, and put it into the group in place of its placeholder."""
        if (lazy := self._lazy.pop(name, None)) is not None:
            self.add_command(_imported(lazy), name)
        return self.commands[name]


def _imported(lazy: LazyCommand) -> Any:
    content = getattr(import_module(f"limelight.cli.{lazy.module}"), lazy.name)
    if isinstance(content, typer.Typer):
        return typer.main.get_command(content)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(lazy.name)(content)
    return typer.main.get_command(single)


def new_group(name: str, summary: str, *, no_args_is_help: bool = False) -> typer.Typer:
    """Return a command that consists of commands, such as `keys`. Its help is plain text, like that of all commands."""
    return typer.Typer(
        name=name, help=summary, no_args_is_help=no_args_is_help, add_completion=False, rich_markup_mode=None
    )
