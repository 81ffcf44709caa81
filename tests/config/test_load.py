"""Loading of settings: precedence, and the report of mistakes."""

from pathlib import Path
from typing import Any, get_args

import pytest

from limelight.config import Settings, all_settings, load_settings
from limelight.errors import SetupError


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def load(config: Path, text: str, environ: dict[str, str] | None = None, **overrides: Any) -> Settings:
    config.write_text(text)
    return load_settings(config, environ or {}, {("server", key): value for key, value in overrides.items()})


def test_defaults_are_the_documented_ones() -> None:
    settings = Settings()
    assert (settings.server.host, settings.server.port, settings.server.default_format) == ("127.0.0.1", 8000, "typed")
    assert (settings.limits.run_seconds, settings.limits.silence_seconds) == (3600, 300)
    assert settings.limits.body_bytes == 10 * 1024 * 1024
    assert settings.limits.result_bytes == 50 * 1024 * 1024
    assert (settings.store.data, settings.store.url) == (".limelight", "sqlite")
    assert (settings.store.retention_days, settings.store.expiry_seconds) == (30, 3600)
    assert settings.store.retention_max_gap_days == 7
    assert settings.agents == {}


def test_command_line_overrides_environment_and_environment_overrides_file(config: Path) -> None:
    text = '[server]\nport = 1\nhost = "file"\ndefault_format = "records"'
    environ = {"LIMELIGHT_PORT": "2", "LIMELIGHT_HOST": "environment"}
    server = load(config, text, environ, port=3).server
    assert (server.port, server.host, server.default_format) == (3, "environment", "records")
    assert server.heartbeat_seconds == Settings().server.heartbeat_seconds


def test_missing_option_changes_nothing(config: Path) -> None:
    assert load(config, "[server]\nport = 1", port=None).server.port == 1


@pytest.mark.parametrize("setting", [s for s in all_settings() if s.env], ids=lambda s: s.env)
def test_every_setting_with_a_variable_can_come_from_the_environment(setting: Any, config: Path) -> None:
    flag, number = isinstance(setting.default, bool), isinstance(setting.default, int | float)
    is_list = setting.key == "trusted_proxies"
    words = () if is_list else get_args(get_args(setting.type)[0])
    value = "true" if flag else "9" if number else words[-1] if words else "nine"
    section = getattr(load(config, "", {setting.env: value}), setting.section)
    assert str(getattr(section, setting.key)) in (str([value]) if is_list else value, "9.0", "True")
    assert getattr(section, setting.key) != setting.default


def test_every_setting_has_its_own_variable_and_a_description() -> None:
    names = [setting.env for setting in all_settings() if setting.env]
    assert len(set(names)) == len(names)
    assert {name for name in names if not name.startswith("LIMELIGHT_")} == {
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "FORWARDED_ALLOW_IPS",
    }
    assert all(setting.description for setting in all_settings())


def test_config_toml_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}).server.port == 8000
    (tmp_path / "config.toml").write_text("[server]\nport = 5")
    assert load_settings(environ={}).server.port == 5


def test_all_settings_of_an_agent_are_read(config: Path) -> None:
    text = """
    [agents.a]
    target = "m:a"
    enable_streaming = false
    max_steps = 100
    planning_interval = 1
    model = "big"
    base_url = "http://127.0.0.1:1/v1"
    workspace = "files"
    imports = ["math"]
    status.ls = "Looking around"
    """
    agent = load(config, text).agents["a"]
    assert (agent.enable_streaming, agent.max_steps, agent.planning_interval) == (False, 100, 1)
    assert (agent.model, agent.base_url, agent.workspace) == ("big", "http://127.0.0.1:1/v1", "files")
    assert (agent.imports, agent.status) == (["math"], {"ls": "Looking around"})
    one, two = load(config, '[agents.one]\n[agents.two]\ntitle = "Zwei"').agents.values()
    assert (one.enable_streaming, one.max_steps, one.imports, one.status, one.title) == (True, None, None, {}, "")
    assert two.title == "Zwei"


def test_origin_names_file_and_line(config: Path) -> None:
    origin = load(config, "# agents\n[agents.a]\ntitle = 'x'").origin
    assert origin.place("agents", "a", "title") == f"{config}:3: "
    assert origin.place("agents", "b") == f"{config}: "
    assert Settings().origin.place("agents", "a") == ""


def test_origin_names_environment_and_command_line(config: Path) -> None:
    origin = load(config, "[server]\nport = 1\nhost = 'x'", {"LIMELIGHT_PORT": "2"}, host="y").origin
    assert origin.place("server", "port") == "LIMELIGHT_PORT, which sets `server.port`: "
    assert origin.place("server", "host") == "`server.host` on the command line: "


@pytest.mark.requirement("settings-errors")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server]\nprot = 1", r"config\.toml:2: \[server\] has no setting 'prot'; did you mean 'port'\?$"),
        ("[server]\nzzz = 1", r"\[server\] has no setting 'zzz'; there are: default_format, .*port"),
        ("[store]\n\nport = 1", r"config\.toml:3: \[store\] has no setting 'port'; it belongs in \[server\]$"),
        ("[sever]\nport = 1", r"config\.toml:1: there is no section \[sever\]; did you mean 'server'\?$"),
        (
            "\n[zzz]",
            r"toml:2: there is no section \[zzz\]; there are: agents, approvals, auth, limits, log, sandbox, server",
        ),
        (
            '[agents.a]\ntarget = "m:a"\ntitel = "x"',
            r"toml:3: \[agents\.a\] has no setting 'titel'; did you mean 'title'",
        ),
        ('[server]\nport = "many"', r'toml:2: \[server\] port is wrong: expected a whole number, got the text "many"$'),
        ("[server]\nport = 1.5", r"toml:2: \[server\] port is wrong: expected a whole number, got 1\.5$"),
        ("[server]\nport = true", r"toml:2: \[server\] port is wrong: expected a whole number, got true$"),
        ("[server]\nport = [1]", r"toml:2: \[server\] port is wrong: expected a whole number, got a list$"),
        (
            "[server]\nport = 1979-05-27",
            r"toml:2: \[server\] port is wrong: expected a whole number, got something else$",
        ),
        ("# x\nserver.host = 5", r"config\.toml:2: \[server\] host is wrong: expected a text in quotes, got 5$"),
        (
            "server = {port = 70000}",
            r"toml:1: \[server\] port is wrong: expected a whole number of at most 65535, got 7",
        ),
        (
            "[store]\nretention_max_gap_days = -1",
            r"toml:2: \[store\] retention_max_gap_days is wrong: expected a number of at least 0, got -1$",
        ),
        ("[limits]\nrun_seconds = nan", r"run_seconds is wrong: expected a number of at least 0\.001, got nan$"),
        ("[tools]\nweb = 'yes'", r'toml:2: \[tools\] web is wrong: expected true or false, got the text "yes"$'),
        (
            "[auth]\napi_key = 4711",
            r"toml:2: \[auth\] api_key is wrong: expected a text in quotes, got a whole number$",
        ),
        (
            "[agents.a]\nmax_steps = 101",
            r"\[agents\.a\] max_steps is wrong: expected a whole number of at most 100, got 101$",
        ),
        (
            "[agents.a]\nmax_steps = 'x'",
            r'\[agents\.a\] max_steps is wrong: expected a whole number, got the text "x"$',
        ),
        (
            "[agents.a]\nplanning_interval = 0",
            r"planning_interval is wrong: expected a whole number of at least 1, got 0$",
        ),
        ("[agents.a]\nstatus = 5", r"toml:2: \[agents\.a\] status is wrong: expected a table, got 5$"),
        (
            "[agents.a.status]\nx = 'y'\nls = 5",
            r"toml:3: \[agents\.a\] status\.ls is wrong: expected a text in quotes, got 5$",
        ),
        (
            "[sandbox]\nlevel = 'docker'",
            r'toml:2: \[sandbox\] level is wrong: expected auto, bubblewrap, landlock or none, got the text "docker"$',
        ),
        ("[agents.a]\nimports = 'os'", r'toml:2: \[agents\.a\] imports is wrong: expected a list, got the text "os"$'),
        (
            "[agents.a]\nimports = ['os', 1]",
            r"toml:2: \[agents\.a\] imports is wrong: expected a text in quotes in the list, got 1$",
        ),
        (
            "\n[agents.'a b']",
            r"toml:2: 'a b' cannot be the name of an agent: 1 to 64 letters, digits, '\.', '_' or '-', a letter or dig",
        ),
        ("[agents.'']", r"toml:1: '' cannot be the name of an agent"),
        ("[agents.'..']", r"toml:1: '\.\.' cannot be the name of an agent"),
        (f"[agents.{'a' * 65}]", r"toml:1: 'a+' cannot be the name of an agent"),
        ("server = 5", r"config\.toml:1: \[server\] has to be a table$"),
        ("agents = 5", r"config\.toml:1: \[agents\] has to be a table$"),
        ("[agents]\na = 5", r"config\.toml:2: \[agents\.a\] has to be a table$"),
        ("[server\nport = 1", r"config\.toml is not valid TOML: .*line 1"),
    ],
)
def test_mistake_in_the_file_is_reported_with_line_and_suggestion(config: Path, text: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        load(config, text)


@pytest.mark.requirement("settings-errors")
def test_all_mistakes_are_reported_together(config: Path) -> None:
    text = """
    [server]
    prot = 1
    host = 5
    [stroe]
    [agents.'a b']
    max_steps = "many"
    [agents.b]
    status = {ls = 1, grep = "Looking", cat = 2}
    titel = "x"
    """
    with pytest.raises(SetupError) as caught:
        load(config, text)
    places = [line.removeprefix(f"{config}:").partition(": ") for line in caught.value.detail.splitlines()]
    assert [(line, message.partition(";")[0].partition(":")[0]) for line, _, message in places] == [
        ("3", "[server] has no setting 'prot'"),
        ("4", "[server] host is wrong"),
        ("5", "there is no section [stroe]"),
        ("6", "'a b' cannot be the name of an agent"),
        ("7", "[agents.a b] max_steps is wrong"),
        ("9", "[agents.b] status.ls is wrong"),
        ("9", "[agents.b] status.cat is wrong"),
        ("10", "[agents.b] has no setting 'titel'"),
    ]


@pytest.mark.parametrize("name", ["a", "deep", "agno-team", "gpt-4.1", "my_bot", "7", "A" * 64])
def test_valid_agent_names_are_accepted(config: Path, name: str) -> None:
    assert list(load(config, f"[agents.'{name}']").agents) == [name]


def test_invalid_value_in_the_environment_names_the_variable(config: Path) -> None:
    with pytest.raises(
        SetupError,
        match=r'^LIMELIGHT_PORT, which sets `server\.port`, is wrong: expected a whole number, got the text "m',
    ):
        load(config, "[server]\nport = 1", {"LIMELIGHT_PORT": "many"})


def test_invalid_value_on_the_command_line_names_the_setting(config: Path) -> None:
    message = r"^`server\.port` on the command line is wrong: expected a whole number of at most 65535, got 99999$"
    with pytest.raises(SetupError, match=message):
        load(config, "[server]\nport = 1", port=99999)


def test_missing_or_binary_config_file_is_an_error(config: Path) -> None:
    with pytest.raises(SetupError, match=r"config\.toml cannot be read: No such file or directory"):
        load_settings(config, {})
    config.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SetupError, match=r"config\.toml is not valid TOML"):
        load_settings(config, {})


def test_config_file_is_read_as_utf8_with_or_without_a_byte_order_mark(config: Path) -> None:
    """Some editors write a mark; line numbers do not change."""
    for mark in ("", "\ufeff"):
        config.write_bytes(f'{mark}[agents.a]\ntitle = "Büchner"'.encode())
        assert load_settings(config, {}).agents["a"].title == "Büchner"
    with pytest.raises(SetupError, match=r"config\.toml:2: .*no setting 'prot'"):
        load(config, "\ufeff[server]\nprot = 7\n")
