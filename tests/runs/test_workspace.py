"""Folder names for sessions: whatever the id is, the name stays inside, and no two sessions share one."""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.errors import StoreUnavailable
from limelight.ids import now_ms, sortable_id
from limelight.models import SessionRef
from limelight.runs.workspace import LOCAL_OWNER, Workspaces, shared_folder, workspace_name
from tests.support.strategies import ODD_TEXTS

session_ids = st.text("ABCabc019._:-", min_size=1, max_size=20) | st.sampled_from([".", "..", "...", ".hidden", "a..b"])
refs = st.builds(SessionRef, st.sampled_from([LOCAL_OWNER, "ada", "ada~", "..", "é/x", *ODD_TEXTS]), session_ids)


@pytest.mark.requirement("workspace-names")
@given(refs)
def test_the_name_is_one_step_down_and_not_hidden(ref: SessionRef) -> None:
    name = workspace_name(ref)
    assert PurePosixPath(name).parts == (name,)
    assert not name.startswith(".")


@given(refs, refs)
def test_two_sessions_never_share_a_folder(one: SessionRef, other: SessionRef) -> None:
    assert (workspace_name(one) == workspace_name(other)) == (one == other)


@pytest.mark.parametrize(("session_id", "name"), [("chat-1", "chat-1"), ("..", "~.."), (".git", "~.git")])
def test_the_local_users_folder_is_called_as_the_session(session_id: str, name: str) -> None:
    assert workspace_name(SessionRef(LOCAL_OWNER, session_id)) == name


def test_another_owners_folder_is_the_same_every_time() -> None:
    name = workspace_name(SessionRef("ada", "chat-1"))
    assert re.fullmatch(r"chat-1~[0-9a-f]{12}", name)
    assert name == workspace_name(SessionRef("ada", "chat-1"))


def test_ids_sort_by_the_time_they_were_made_and_do_not_repeat() -> None:
    before = now_ms()
    ids = [sortable_id("run_") for _ in range(500)]
    assert len(set(ids)) == 500
    assert all(re.fullmatch(r"run_[0-9a-hjkmnp-tv-z]{26}", id_) for id_ in ids)
    times = [time_of(id_.removeprefix("run_")) for id_ in ids]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= now_ms()


def time_of(ulid: str) -> int:
    """The milliseconds in an id's first ten characters, in Crockford's base 32."""
    number = 0
    for character in ulid[:10]:
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    return number


def test_a_workspace_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = Workspaces(tmp_path / "workspaces").made(SessionRef(LOCAL_OWNER, "s"))
    assert [mode_of(one) for one in (folder, folder.parent)] == [0o700, 0o700]
    assert Workspaces(tmp_path / "workspaces").made(SessionRef(LOCAL_OWNER, "s")) == folder
    shared = shared_folder(str(tmp_path / "deep" / "shared"))
    assert mode_of(shared) == 0o700


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_data_folder_that_was_moved_away_is_not_made_anew(tmp_path: Path) -> None:
    """Or who moves it back would move it into the new one."""
    data = tmp_path / "data"
    with pytest.raises(StoreUnavailable, match="the data folder of the server is gone"):
        Workspaces(data / "workspaces").made(SessionRef(LOCAL_OWNER, "s"))
    assert not data.exists()


async def test_a_workspace_deeper_than_any_stack_is_removed(tmp_path: Path) -> None:
    workspaces, ref = Workspaces(tmp_path), SessionRef("local", "s")
    folder = workspaces.folder(ref)
    folder.mkdir()
    for _ in range(1200):
        folder /= "d"
        folder.mkdir()
    await workspaces.remove(ref)
    assert not workspaces.folder(ref).exists()
