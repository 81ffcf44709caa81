"""The table of levels in `docs/sandbox.md`: each row is tried at each level, and does what the table says."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from limelight.errors import SetupError
from limelight.sandbox import levels
from limelight.sandbox.launch import Launch
from limelight.sandbox.levels import Availability, availability, choose_level
from limelight.sandbox.policy import MB, Level
from tests.sandbox.attacker import Attacker, Outside
from tests.sandbox.escapes import CATEGORIES, INTERPRETED, NATIVE, UNCONFINED
from tests.sandbox.test_command_runner import run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
ALL_LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock", "none")
COMMAND_ROW = "start processes (commands of `deep`)"

ROWS = {
    "read and write the session's folder": "open('mine', 'w').write('x'); reached = read('mine') == 'x'",
    "read Python, its libraries and the system's programs": """
import json
reached = bool(read(json.__file__) and read("/bin/sh"))
""",
    "read other files: the data folder, the configuration, home folders, other sessions": """
found = [target["database"], target["config"], target["home"] + "/.ssh/id_rsa"]
found += [target["other_workspace"] + "/notes.txt"]
results = []
for file in found:
    try:
        results.append(is_secret(read(file)))
    except OSError:
        results.append(False)
assert len(set(results)) == 1
reached = results[0]
""",
    "see that a file with a known name exists, and its size": "reached = os.stat(target['config']).st_size",
    "write other files": "open(target['outside'] + '/new', 'w').write('x'); reached = 'written'",
    "use the network": "reached = socket.create_connection(('127.0.0.1', target['tcp_port']), 5)",
    "see the environment of the server, or its secrets": """
reached = is_secret(read("/proc/%d/environ" % target["victim_pid"]))
assert not is_secret(os.environ)
""",
    "see, signal or trace other processes": "os.kill(target['victim_pid'], 0); reached = 'signalled'",
    "start processes (Python code)": "import subprocess; reached = subprocess.check_output(['/bin/echo', 'started'])",
    "use more memory, CPU time or larger files than the limits": f"""
import resource
assert resource.getrlimit(resource.RLIMIT_CPU) == (60, 60)
results = []
large = os.open("large", os.O_CREAT | os.O_RDWR)
for attempt in (lambda: bytearray({1000 * MB}), lambda: os.truncate(large, {17 * MB}) or "larger"):
    try:
        results.append(attempt())
    except (MemoryError, OSError):
        pass
reached = results
""",
    "leave a process behind when its run or conversation ends": """
import subprocess
process = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
reached = process.pid
""",
    "change modes and times of files in its folder": """
open("mine", "w").close()
os.chmod("mine", 0o751)
os.utime("mine", (1, 1))
about = os.stat("mine")
reached = about.st_mode & 0o777 == 0o751 and about.st_mtime == 1
""",
    "fill the disk with many files": """
os.makedirs("many", exist_ok=True)
for number in range(200):
    open(f"many/{number}", "wb").write(bytes(100_000))
reached = len(os.listdir("many")) == 200
""",
}
"""The rows of the table about Python code, as native Python. It sets `reached`, or fails with an OSError."""


def table() -> dict[str, dict[str, bool]]:
    """Read the table of levels: whether code can do something, by row and level."""
    lines = [line for line in DOCUMENT.splitlines() if line.startswith("|")]
    begin = next(number for number, line in enumerate(lines) if line.startswith("| code can"))
    rows: dict[str, dict[str, bool]] = {}
    for line in lines[begin + 2 :]:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(ALL_LEVELS):
            break
        rows[name] = {
            level: cell.strip("*").startswith(("yes", "up to")) for level, cell in zip(ALL_LEVELS, cells, strict=True)
        }
        assert all(cell.strip("*").startswith(("yes", "no", "up to")) for cell in cells), line
    return rows


@pytest.fixture(scope="module", params=ALL_LEVELS)
def any_level(request: pytest.FixtureRequest) -> Level:
    return request.param


@pytest.fixture(scope="module")
def code(any_level: Level, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Attacker, Outside]]:
    """A worker of each level, and its own things outside, which code at the level `none` may change."""
    world = Outside(tmp_path_factory.mktemp("world").resolve())
    with world.started():
        attacker = Attacker(world.sandbox(any_level), world.workspace)
        yield attacker, world
        attacker.close()


def test_table_names_what_is_tried() -> None:
    assert set(table()) == {*ROWS, COMMAND_ROW}


@pytest.mark.requirement("sandbox-levels")
@pytest.mark.parametrize("row", ROWS)
def test_access_of_code_is_that_of_the_documented_table(
    row: str, any_level: Level, code: tuple[Attacker, Outside]
) -> None:
    attacker, world = code
    report = attacker.attack(ROWS[row], world.target(any_level))
    assert not report.error or "OSError" in report.error, report
    assert bool(report.reached not in ("", "False", "[]")) == table()[row][any_level], report
    if row.startswith("leave a process behind") and report.reached:
        attacker.close()
        os.kill(int(report.reached), 0)
        os.kill(int(report.reached), signal.SIGKILL)


@pytest.mark.requirement("sandbox-levels")
def test_command_can_start_processes_at_each_level(any_level: Level, code: tuple[Attacker, Outside]) -> None:
    ended = run(code[1], any_level, "/bin/echo one | /bin/cat; (/bin/echo two) & wait")
    assert table()[COMMAND_ROW][any_level] == (ended.output.split() == ["one", "two"])


@pytest.mark.requirement("sandbox-confines")
def test_same_attempts_get_out_of_a_process_without_a_sandbox(tmp_path: Path) -> None:
    """What holds attempts at the other levels is the sandbox: they are not broken."""
    attempts = {escape.name: escape for escape in NATIVE}
    world = Outside(tmp_path.resolve())
    with world.started():
        attacker = Attacker(world.sandbox("none"), world.workspace)
        failed: list[str] = []
        try:
            for name in UNCONFINED:
                before = world.state()
                report = attacker.attack(attempts[name].code, world.target("none"))
                if not report.reached and world.state() == before:
                    failed.append(f"{name}: {report}")
        finally:
            attacker.close()
    assert not failed


def test_each_attempt_has_one_category_and_the_document_lists_all() -> None:
    names = [name for names in CATEGORIES.values() for name in names.split()]
    assert sorted(names) == sorted(escape.name for escape in (*NATIVE, *INTERPRETED))
    assert len(CATEGORIES) >= 60
    section = DOCUMENT.partition("## Tested attacks")[2].partition("\n## ")[0]
    listed = re.split(r",\s+", section.strip().rpartition("\n\n")[2].rstrip("."))
    assert [" ".join(item.split()) for item in listed] == list(CATEGORIES)


@pytest.mark.requirement("sandbox-levels")
@pytest.mark.parametrize("network", [False, True])
def test_network_is_reached_only_if_the_setting_allows_it(network: bool, level: Level, outside: Outside) -> None:
    attacker = Attacker(outside.sandbox(level, network=network), outside.workspace)
    try:
        code = "reached = socket.create_connection(('127.0.0.1', target['tcp_port']), 5)"
        assert bool(attacker.attack(code, outside.target(level)).reached) == network
    finally:
        attacker.close()
    with contextlib.suppress(BlockingIOError):
        outside.sockets["tcp"].setblocking(False)
        outside.sockets["tcp"].accept()[0].close()


# The probe and the choice of the level


@pytest.mark.requirement("sandbox-reported")
@pytest.mark.parametrize(
    ("output", "exit_code", "reason"),
    [
        ("confined", 0, ""),
        ("a socket can be created", 0, "a socket can be created"),
        ("bwrap: No permissions to create a new namespace", 1, "bwrap: No permissions to create a new namespace"),
        ("Traceback (most recent call last):\n  ...\nValueError: broken", 1, "the probe failed: ValueError: broken"),
        ("Traceback (most recent call last):\n  ...\nValueError: broken", 0, "the probe failed: ValueError: broken"),
        ("", 0, "the probe ended with exit code 0 and no result"),
        ("confined", -9, "the probe ended with exit code -9 and no result"),
    ],
)
def test_reason_distinguishes_a_failed_probe_from_a_missing_level(
    output: str, exit_code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = f"import os, sys; sys.stdout.write({output!r}); sys.stdout.flush()"
    end += "; os.kill(os.getpid(), 9)" if exit_code < 0 else f"; sys.exit({exit_code})"

    def launch(*_: object) -> Launch:
        return Launch([sys.executable, "-c", end], {})

    monkeypatch.setattr(levels, "launch", launch)
    assert levels.probe_problem("landlock") == reason


def set_levels(monkeypatch: pytest.MonkeyPatch, *works: Level) -> None:
    def found(level: Level) -> Availability:
        return Availability(level, level in works or level == "none", f"no {level} here")

    monkeypatch.setattr(levels, "availability", found)


@pytest.mark.requirement("sandbox-reported")
def test_weaker_level_has_the_reason_why_a_stronger_one_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    set_levels(monkeypatch, "landlock")
    assert choose_level("auto") == Availability("landlock", True, "bubblewrap: no bubblewrap here")
    assert choose_level("landlock").reason == choose_level("none").reason == "set by sandbox.level"
    set_levels(monkeypatch)
    reason = "bubblewrap: no bubblewrap here; landlock: no landlock here"
    assert choose_level("auto") == Availability("none", True, reason)


@pytest.mark.requirement("sandbox-level-setting")
def test_level_that_does_not_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    set_levels(monkeypatch, "landlock")
    with pytest.raises(SetupError, match=r"sandbox\.level = 'bubblewrap' does not work here: no bubblewrap here"):
        choose_level("bubblewrap")


def test_strongest_level_that_works_is_chosen_without_a_reason() -> None:
    assert choose_level("auto") == availability("bubblewrap") == Availability("bubblewrap", True)
