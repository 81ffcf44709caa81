"""Workspaces: every session id has a folder name of its own that stays inside the root folder."""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.errors import StoreUnavailable
from limelight.models import SessionRef
from limelight.runs.workspace import LOCAL_OWNER, Workspaces, shared_folder, workspace_name
from tests.support.strategies import ODD_TEXTS

session_ids = st.text("ABCabc019._:-", min_size=1, max_size=20) | st.sampled_from([".", "..", "...", ".hidden", "a..b"])
refs = st.builds(SessionRef, st.sampled_from([LOCAL_OWNER, "ada", "ada~", "..", "é/x", *ODD_TEXTS]), session_ids)


@pytest.mark.requirement("workspace-names")
@given(refs)
def test_workspace_name_is_one_path_component_and_not_hidden(ref: SessionRef) -> None:
    name = workspace_name(ref)
    assert PurePosixPath(name).parts == (name,)
    assert not name.startswith(".")


@given(refs, refs)
def test_two_sessions_never_share_a_folder(one: SessionRef, other: SessionRef) -> None:
    assert (workspace_name(one) == workspace_name(other)) == (one == other)


@pytest.mark.parametrize(("session_id", "name"), [("chat-1", "chat-1"), ("..", "~.."), (".git", "~.git")])
def test_workspace_of_the_local_user_has_the_session_id_as_its_name(session_id: str, name: str) -> None:
    assert workspace_name(SessionRef(LOCAL_OWNER, session_id)) == name


def test_workspace_name_of_another_owner_has_a_stable_hash() -> None:
    name = workspace_name(SessionRef("ada", "chat-1"))
    assert re.fullmatch(r"chat-1~[0-9a-f]{12}", name)
    assert name == workspace_name(SessionRef("ada", "chat-1"))


def test_workspace_is_private(tmp_path: Path) -> None:
    folder = Workspaces(tmp_path / "workspaces").ensure_folder(SessionRef(LOCAL_OWNER, "s"))
    assert [mode_of(one) for one in (folder, folder.parent)] == [0o700, 0o700]
    assert Workspaces(tmp_path / "workspaces").ensure_folder(SessionRef(LOCAL_OWNER, "s")) == folder
    shared = shared_folder(str(tmp_path / "deep" / "shared"))
    assert mode_of(shared) == 0o700


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_missing_data_folder_is_not_created(tmp_path: Path) -> None:
    """An operator who moves it back would otherwise move it into the new one."""
    data = tmp_path / "data"
    with pytest.raises(StoreUnavailable, match="the data folder of the server is gone"):
        Workspaces(data / "workspaces").ensure_folder(SessionRef(LOCAL_OWNER, "s"))
    assert not data.exists()


async def test_workspace_deeper_than_the_recursion_limit_is_removed(tmp_path: Path) -> None:
    workspaces, ref = Workspaces(tmp_path), SessionRef("local", "s")
    folder = workspaces.folder(ref)
    folder.mkdir()
    for _ in range(1200):
        folder /= "d"
        folder.mkdir()
    await workspaces.remove(ref)
    assert not workspaces.folder(ref).exists()
