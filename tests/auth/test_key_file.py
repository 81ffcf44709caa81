"""The key file: a server sees changes of other processes, reads are never partial, and only the owner can read it."""

import os
import stat
import threading
from pathlib import Path

import pytest

from limelight.auth.key_file import Keyring
from limelight.errors import SetupError


def test_server_sees_keys_that_another_process_creates_or_revokes(tmp_path: Path) -> None:
    server, command = Keyring(tmp_path), Keyring(tmp_path)
    assert not server.has_any()
    key, text = command.create("ann", ("use",), 1)
    assert server.has_any()
    assert server.find(text) == key
    assert command.revoke(key.key_id, 2) is not None
    assert server.find(text) is None


@pytest.mark.requirement("key-required")
def test_keyring_still_has_keys_after_the_last_one_is_revoked(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    key, _ = keyring.create("ann", ("use",), 1)
    keyring.revoke(key.key_id, 2)
    assert keyring.has_any()


def test_second_revocation_keeps_the_first_date(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    key, _ = keyring.create("ann", ("use",), 1)
    keyring.revoke(key.key_id, 2)
    again = keyring.revoke(key.key_id, 3)
    assert again is not None
    assert again.revoked_at == 2
    assert keyring.revoke("unknown", 3) is None


def test_id_with_the_secret_of_another_key_is_not_found(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path)
    _, one = keyring.create("ann", ("use",), 1)
    _, other = keyring.create("ben", ("use",), 1)
    mixed = f"{one.rpartition('_')[0]}_{other.rpartition('_')[2]}"
    assert keyring.find(mixed) is None


def test_revoke_in_a_missing_folder_does_not_create_it(tmp_path: Path) -> None:
    assert Keyring(tmp_path / "typo").revoke("unknown", 1) is None
    assert not (tmp_path / "typo").exists()


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    Keyring(tmp_path).create("ann", ("use",), 1)
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("exists", [False, True])
def test_lock_is_private_whatever_the_umask_is(tmp_path: Path, exists: bool) -> None:
    lock = tmp_path / "keys.json.lock"
    before = os.umask(0)
    try:
        if exists:
            lock.touch(mode=0o666)
        Keyring(tmp_path).create("ann", ("use",), 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_concurrent_creates_lose_no_key(tmp_path: Path) -> None:
    def make(name: str) -> None:
        for _ in range(10):
            Keyring(tmp_path).create(name, ("use",), 1)

    threads = [threading.Thread(target=make, args=(name,)) for name in ("ann", "ben", "cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Keyring(tmp_path).all()) == 30


def test_invalid_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("[{")
    with pytest.raises(SetupError, match=r"keys\.json cannot be read"):
        Keyring(tmp_path).has_any()


@pytest.mark.requirement("key-file-fails-closed")
def test_removed_file_is_an_error_and_does_not_open_the_server(tmp_path: Path) -> None:
    server = Keyring(tmp_path)
    server.create("ann", ("use",), 1)
    (tmp_path / "keys.json").unlink()
    with pytest.raises(SetupError, match="are gone"):
        server.has_any()
