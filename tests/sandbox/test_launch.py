"""The command lines and environments of sandboxes, by level."""

import sys
from pathlib import Path

import msgspec
import pytest

from limelight.errors import SetupError
from limelight.sandbox.launch import bubblewrap, environment, launch, read_arguments, readable_paths
from limelight.sandbox.policy import Level, Limits, Policy

ALL_LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock", "none")


def policy(workspace: Path, **options: object) -> Policy:
    return msgspec.structs.replace(Policy(workspace=str(workspace), read_only=("/usr", "/bin")), **options)


def mounts(argv: list[str], option: str, values: int) -> list[list[str]]:
    return [argv[place + 1 : place + 1 + values] for place, word in enumerate(argv) if word == option]


@pytest.mark.parametrize("level", ALL_LEVELS)
@pytest.mark.parametrize("program", ["worker", "command_runner", "probe"])
def test_program_gets_its_level_policy_and_arguments(level: Level, program: str, tmp_path: Path) -> None:
    wanted = policy(tmp_path, hidden=("/nowhere",), network=True, limits=Limits(memory_mb=5))
    argv = launch(level, wanted, program, ["one; two"]).argv
    place = argv.index("-m")
    assert argv[place - 3 : place + 2] == [sys.executable, "-I", "-B", "-m", f"limelight.sandbox.{program}"]
    assert read_arguments(argv[place + 2 :]) == (level, wanted, ["one; two"])


@pytest.mark.parametrize("level", ALL_LEVELS)
def test_environment_has_only_language_and_time_zone_of_the_server(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "LIMELIGHT_API_KEY", "LD_PRELOAD", "PYTHONPATH", "HOME", "PATH", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "of the server")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    made = environment(level, policy(tmp_path))
    assert "of the server" not in made.values()
    assert made["TZ"] == "Europe/Berlin"
    assert made["HOME"] == str(tmp_path)
    assert set(made) <= {
        *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PATH", "HOME", "TMPDIR", "TERM"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GIT_CONFIG_NOSYSTEM"),
    }


def test_bubblewrap_separates_everything_and_only_the_workspace_can_be_written(tmp_path: Path) -> None:
    argv = launch("bubblewrap", policy(tmp_path), "worker").argv
    before = argv[: argv.index("--")]
    for option in ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--disable-userns"):
        assert option in before
    assert mounts(before, "--cap-drop", 1) == [["ALL"]]
    assert "--as-pid-1" in before and "--share-net" not in before
    assert mounts(before, "--bind", 2) == [[str(tmp_path), str(tmp_path)]]
    assert ["/usr", "/usr"] in mounts(before, "--ro-bind", 2)
    assert mounts(before, "--remount-ro", 1) == [["/proc"], ["/dev"], ["/"]]


def test_bubblewrap_has_the_network_only_if_it_is_allowed(tmp_path: Path) -> None:
    assert "--share-net" in bubblewrap(policy(tmp_path, network=True))
    assert "/etc/resolv.conf" in readable_paths(network=True) or not Path("/etc/resolv.conf").exists()
    assert "/etc/resolv.conf" not in readable_paths()


def test_bubblewrap_covers_hidden_paths_after_the_folder_that_contains_them(tmp_path: Path) -> None:
    library, workspace = tmp_path / "library", tmp_path / "library" / "workspace"
    data, file = library / "data", workspace / "config.toml"
    for folder in (workspace, data):
        folder.mkdir(parents=True)
    file.write_text("x")
    hidden = (str(data), str(file), str(library / "gone"))
    words = " ".join(bubblewrap(policy(workspace, read_only=(str(library),), hidden=hidden)))
    order = [f"--ro-bind {library} {library}", f"--tmpfs {data}", f" --bind {workspace} {workspace}"]
    places = [words.rindex(part) for part in (*order, f"--ro-bind /dev/null {file}")]
    assert places == sorted(places)
    assert "gone" not in words


def test_landlock_refuses_a_hidden_path_below_a_readable_folder(tmp_path: Path) -> None:
    (tmp_path / "library" / "data").mkdir(parents=True)
    wanted = policy(
        tmp_path / "workspace", read_only=(str(tmp_path / "library"),), hidden=(str(tmp_path / "library" / "data"),)
    )
    with pytest.raises(SetupError, match="landlock cannot hide"):
        launch("landlock", wanted, "worker")
    assert launch("bubblewrap", wanted, "worker").argv


def test_readable_paths_are_the_system_the_interpreter_and_the_package_without_home_folders() -> None:
    import limelight

    found = readable_paths(("/etc/hostname", "/does/not/exist"))
    assert "/usr" in found and str(Path(limelight.__file__).parent) in found
    assert str(Path(sys.prefix, "lib")) in found
    assert "/does/not/exist" not in found
    assert str(Path.home()) not in found and "/etc" not in found and sys.prefix not in found
    assert len(set(found)) == len(found)
