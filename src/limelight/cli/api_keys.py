"""`limelight keys`: creates, lists and revokes API keys. A running server needs no restart."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from limelight.auth.api_keys import ApiKey
from limelight.auth.identity import SCOPE_DESCRIPTIONS, SCOPES, Scope, user_id_error
from limelight.auth.key_file import Keyring
from limelight.cli.command_group import new_group
from limelight.cli.options import Config, Data, settings_of
from limelight.cli.output import local_time, print_json, table_lines
from limelight.errors import SetupError
from limelight.ids import now_ms

COLUMNS = ("KEY", "USER", "SCOPES", "CREATED", "REVOKED")

keys = new_group("keys", "Create, list and revoke API keys.", no_args_is_help=True)


@keys.command()
def create(
    user: Annotated[str, typer.Option(help="The user of the key, who owns everything that is created with it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help=f"A scope, may be repeated: {', '.join(SCOPES)}.  [default: use]",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Create an API key and print it, alone on standard output. It is shown only once: the server stores its hash."""
    if problem := user_id_error(user):
        raise SetupError(problem)
    scopes = _parse_scopes(scope or ["use"])
    key, text = _keyring(data, config).create(user, scopes, now_ms())
    allowed = "; ".join(f"{one}: {SCOPE_DESCRIPTIONS[one]}" for one in scopes)
    typer.echo(f"Key {key.key_id} of {user} ({allowed}).", err=True)
    typer.echo("Store it now: it is not shown again.", err=True)
    typer.echo(text)


@keys.command("list")
def list_(
    data: Data = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines, without the hashes.")] = False,
) -> None:
    """List the keys, including revoked ones."""
    found = sorted(_keyring(data, config).all(), key=lambda key: key.created_at)
    if as_json:
        for key in found:
            print_json(_public(key))
    elif not found:
        typer.echo("There are no keys.")
    else:
        typer.echo("\n".join(table_lines(COLUMNS, [_row(key) for key in found])))


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id in the list, or the complete key.")],
    data: Data = None,
    config: Config = None,
) -> None:
    """Revoke a key: the server refuses it from now on."""
    name = key_id.split("_")[1] if key_id.count("_") == 2 else key_id
    key = _keyring(data, config).revoke(name, now_ms())
    if key is None:
        raise SetupError(f"there is no key {name!r}: `limelight keys list` lists all keys")
    typer.echo(f"Key {key.key_id} of {key.user} is revoked.")


def _parse_scopes(named: list[str]) -> tuple[Scope, ...]:
    wanted = {word for text in named for word in text.replace(",", " ").split()}
    unknown = sorted(wanted.difference(SCOPES))
    if unknown or not wanted:
        raise SetupError(f"there is no scope {', '.join(unknown) or repr('')}; there are: {', '.join(SCOPES)}")
    return tuple(one for one in SCOPES if one in wanted)


def _keyring(data: Path | None, config: Path | None) -> Keyring:
    return Keyring(Path(settings_of(data, config).store.data))


def _public(key: ApiKey) -> dict[str, object]:
    return {name: value for name, value in msgspec.to_builtins(key).items() if name != "secret_hash"}


def _row(key: ApiKey) -> list[str]:
    return [
        key.key_id,
        key.user,
        " ".join(key.scopes),
        local_time(key.created_at),
        local_time(key.revoked_at) if key.revoked_at else "",
    ]
