"""`limelight openwebui`: installs Limelight's pipe, a function of Open WebUI, or prints its source."""

import os
from typing import Annotated, Any, Literal

import typer

from limelight.cli.command_group import new_group
from limelight.client import ClientError, SyncClient, Unauthorized
from limelight.errors import SetupError
from limelight.openwebui.api_client import OpenWebUI
from limelight.openwebui.install import check_admin, check_display, check_version, current_display, install, pipe_text

openwebui = new_group("openwebui", "Show agents in Open WebUI.", no_args_is_help=True)

Display = Literal["native", "collapse", "details", "plain"]


@openwebui.command("install")
def install_(
    ctx: typer.Context,
    url: Annotated[str, typer.Option(help="Address of Open WebUI, as this machine reaches it.")],
    token: Annotated[
        str, typer.Option(envvar="OPEN_WEBUI_TOKEN", help="An administrator's API key or token.", show_envvar=True)
    ] = "",
    email: Annotated[str, typer.Option(help="Sign in with this address; the password is asked for.")] = "",
    server: Annotated[
        str | None,
        typer.Option(help="Address of the Limelight server, as Open WebUI reaches it.  [default: what is set there]"),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="LIMELIGHT_API_KEY", help="The Limelight server's API key.", show_envvar=True),
    ] = None,
    display: Annotated[
        Display | None, typer.Option(help="How the work is shown.  [default: what is set there]")
    ] = None,
    share: Annotated[bool, typer.Option("--share", help="Let all users choose the models, not only admins.")] = False,
) -> None:
    """Install the pipe in a running Open WebUI, enable it and set its valves. Safe to repeat."""
    given = {"DEEP_AGENT_URL": server, "API_KEY": api_key, "DISPLAY": display}
    valves: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    source = ctx.get_parameter_source("token")
    if email and source is not None and source.name == "ENVIRONMENT":
        token = ""  # the command line overrides the environment
    if bool(token) == bool(email):
        raise SetupError("name an administrator of Open WebUI: with --token, or with --email")
    with OpenWebUI(url) as webui:
        version = webui.version()
        typer.echo(f"Open WebUI {version} at {webui.url}")
        if webui.url != url.rstrip("/"):
            typer.echo(f"note: {url} redirects there")
        check_version(version)
        if email:
            webui.sign_in(email, _password())
        else:
            webui.use_token(token)
        check_admin(webui.user())
        check_display(version, display or current_display(webui))
        for line in install(webui, pipe_text(), valves, share=share):
            typer.echo(line)
    if server and api_key:
        _warn_about_key(server, api_key)


@openwebui.command()
def pipe() -> None:
    """Print the source of the pipe, to be pasted into Open WebUI under Admin Panel, Functions."""
    typer.echo(pipe_text(), nl=False)


def _warn_about_key(server: str, api_key: str) -> None:
    """Warn if the key lacks the scope on-behalf-of.

    Without it, all users of Open WebUI would be one user of Limelight. Skipped if the server does not answer.
    """
    try:
        with SyncClient(server, key=api_key, timeout=5) as client:
            me = client.me()
    except Unauthorized as refused:
        typer.echo(f"limelight: {server} refuses the API key: {refused}", err=True)
    except ClientError:
        return
    else:
        if "on-behalf-of" not in me.scopes:
            typer.echo(
                f"limelight: with this key all chats belong to {me.user}; create one that may act for other users: "
                "limelight keys create --user open-webui --scope use --scope on-behalf-of",
                err=True,
            )


def _password() -> str:
    """Return the password from OPEN_WEBUI_PASSWORD, or ask for it at the terminal."""
    return os.environ.get("OPEN_WEBUI_PASSWORD") or typer.prompt("Password", hide_input=True)
