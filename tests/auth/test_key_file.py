"""The file of keys: changed beside a server that reads it, whole at every moment, and for its owner's eyes only."""

import stat
import threading
from pathlib import Path

import pytest

from limelight.auth.key_file import Keyring
from limelight.errors import SetupError


def test_a_server_sees_a_key_that_is_made_or_revoked_beside_it(tmp_path: Path) -> None:
    server, command = Keyring(tmp_path), Keyring(tmp_path)
    assert not server.has_any()
    key, text = command.create("ann", ("use",), 1)
    assert server.has_any()
    assert server.find(text) == key
    assert command.revoke(key.key_id, 2) is not None
    assert server.find(text) is None


def test_a_server_does_not_open_when_its_last_key_is_revoked(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    key, _ = keyring.create("ann", ("use",), 1)
    keyring.revoke(key.key_id, 2)
    assert keyring.has_any()


def test_a_key_is_revoked_once(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    key, _ = keyring.create("ann", ("use",), 1)
    keyring.revoke(key.key_id, 2)
    again = keyring.revoke(key.key_id, 3)
    assert again is not None
    assert again.revoked_at == 2
    assert keyring.revoke("nobodys", 3) is None


def test_the_right_id_with_another_secret_is_no_key(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    _, one = keyring.create("ann", ("use",), 1)
    _, other = keyring.create("ben", ("use",), 1)
    mixed = f"{one.rpartition('_')[0]}_{other.rpartition('_')[2]}"
    assert keyring.find(mixed) is None


def test_a_folder_that_is_misspelt_is_not_made(tmp_path: Path) -> None:
    assert Keyring(tmp_path / "typo").revoke("nobodys", 1) is None
    assert not (tmp_path / "typo").exists()


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    Keyring(tmp_path).create("ann", ("use",), 1)
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_commands_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def make(name: str) -> None:
        for _ in range(10):
            Keyring(tmp_path).create(name, ("use",), 1)

    threads = [threading.Thread(target=make, args=(name,)) for name in ("ann", "ben", "cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Keyring(tmp_path).all()) == 30


def test_a_broken_file_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("[{")
    with pytest.raises(SetupError, match=r"keys\.json cannot be read"):
        Keyring(tmp_path).has_any()


def test_whoever_removes_the_file_does_not_open_a_server(tmp_path: Path) -> None:
    server = Keyring(tmp_path)
    server.create("ann", ("use",), 1)
    (tmp_path / "keys.json").unlink()
    with pytest.raises(SetupError, match="are gone"):
        server.has_any()
