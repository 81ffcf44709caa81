"""Which names users may have. Pure."""

MAX_USER_ID = 256
SYSTEM = "system"
"""Who decides when nobody does: by this name an answer that nobody gave is known in the log."""


def wrong_with_user(user_id: str) -> str:
    """Why this cannot be the id of a user; "" if it can. Nothing is cut or replaced: that could make two users one."""
    if not 1 <= len(user_id) <= MAX_USER_ID:
        return f"a user id has at most {MAX_USER_ID} characters, and at least one"
    if user_id != user_id.strip():
        return "a user id has no spaces around it"
    if not user_id.isprintable() or "\ufffd" in user_id:
        return "a user id is text that can be printed, percent-encoded as UTF-8 in a header"
    if user_id == SYSTEM:
        return f"the user {SYSTEM!r} is the server itself: choose another name"
    return ""
