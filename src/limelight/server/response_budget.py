"""Limits the memory for large responses that are built in memory: pages of messages, printed output, parsed answers.

The large responses of a user are built one after another. Each counts toward the user's limit until the client has read
it. Values that `downloads.py` sends in parts do not count.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from limelight.errors import TooManyBytes
from limelight.models import LOCAL_OWNER
from limelight.runs.limits import RETRY_AFTER_SECONDS

MAX_UNREAD_BYTES = 32 * 1024 * 1024
"""Number of unread bytes of large responses from which on no further large response to the user is built."""
MAX_UNREAD_LOCAL_BYTES = 4 * MAX_UNREAD_BYTES
"""The same limit for the user `local`, which represents all users without a key."""
LARGE_RESPONSE = 256 * 1024
"""Size in bytes above which a response counts toward the limit."""
SEND_BYTES = 64 * 1024
"""Number of bytes of one send. The next send waits until the transport's buffer has room again."""


class ResponseBudget:
    """Counts the bytes of large responses that each user has not read yet, and limits them."""

    def __init__(self) -> None:
        self._unread: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one_at_a_time(self, owner: str) -> AsyncGenerator[None]:
        """Wait until no other large response to a user is being built, then run the `with` block, which builds one.

        Raises TooManyBytes if the user has too many unread bytes.
        """
        async with self._locks.setdefault(owner, asyncio.Lock()):
            limit = MAX_UNREAD_LOCAL_BYTES if owner == LOCAL_OWNER else MAX_UNREAD_BYTES
            if (unread := self._unread[owner]) >= limit:
                detail = f"large responses to you hold {unread:,} bytes that your clients do not read: read them first"
                raise TooManyBytes(detail, retry_after=RETRY_AFTER_SECONDS)
            yield

    @contextmanager
    def counted(self, owner: str, size: int) -> Generator[None]:
        """Count `size` unread bytes of a user during the `with` block, which sends the response."""
        self._unread[owner] += size
        try:
            yield
        finally:
            self._unread[owner] -= size
            if not self._unread[owner]:
                del self._unread[owner]

    def unread(self, owner: str) -> int:
        return self._unread[owner]

    def count_if_large(self, owner: str, response: Response) -> Response:
        """Wrap a large response: its bytes count toward the budget until they are sent. Others are returned as is."""
        return LimitedResponse(self, owner, response) if len(response.body) > LARGE_RESPONSE else response


class LimitedResponse(Response):
    """A response in memory that is counted as unread by its user until it is sent, as fast as the client reads."""

    def __init__(self, budget: ResponseBudget, owner: str, response: Response) -> None:
        self._budget = budget
        self._owner = owner
        self.status_code = response.status_code
        self.raw_headers = response.raw_headers
        self.body = response.body
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._budget.counted(self._owner, len(self.body)):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            view = memoryview(self.body)
            for start in range(0, 0 if scope["method"] == "HEAD" else len(view), SEND_BYTES):
                piece = bytes(view[start : start + SEND_BYTES])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)  # other tasks run, even if the client reads at once
            await send({"type": "http.response.body", "body": b"", "more_body": False})
