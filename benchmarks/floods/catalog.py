"""The list of floods: what a flooding client sends to each wire and route. A new wire or route needs a new entry.

A flood is data: `benchmarks.floods.load_generator` executes it. In requests, bodies and messages, the names of
`PLACEHOLDERS` in braces stand for objects of the flooding user, which the load generator creates before the flood.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

KB = 1024
MB = 1024 * KB
PLACEHOLDERS = ("run", "session", "long", "made", "artifact", "asking", "approval", "asset", "key")
"""`run` is a live run of `session`, `long` an ended run with many events, `made` an ended run with a large result and
the large file `artifact`, `asking` a run with the open approval `approval`, `asset` the largest file of the page."""
NUMBER = "{number}"
"""Placeholder for a number of eight digits, which differs in every request."""
TEXT, BINARY, PING, PONG = 1, 2, 9, 10
"""Opcodes of WebSocket frames."""
JSON = "content-type: application/json\r\n"
Wire = Literal["connections", "HTTP", "bodies", "SSE", "socket"]
Keys = Literal["both", "with", "without"]
Reads = Literal["all", "slowly", "nothing"]


class Body(msgspec.Struct, frozen=True):
    """A request body. `{padding}` in its text is replaced by repetitions of `padding` up to about `size` bytes."""

    text: str
    padding: str = ""
    size: int = 0

    def encode(self) -> bytes:
        before, found, after = self.text.partition("{padding}")
        count = (self.size - len(before) - len(after)) // len(self.padding) if found else 0
        return (before + self.padding * count + after).encode()


class Request(msgspec.Struct, frozen=True):
    """An HTTP request. `headers` are complete lines."""

    method: str
    path: str
    body: Body | None = None
    headers: str = JSON
    announced: int | None = None
    """The `Content-Length`, if it is not the size of the body."""
    is_chunked: bool = False
    """Whether a chunked body begins with this request. `Flood.rest` continues it."""
    authorization: str | None = None
    """The value of the header, in place of the key of the flood."""


class Message(msgspec.Struct, frozen=True):
    """A WebSocket frame from the client."""

    body: Body
    opcode: int = TEXT
    is_final: bool = True


class Flood(msgspec.Struct, frozen=True, kw_only=True):
    """What each connection of a flood sends and reads, and how fast."""

    name: str
    wire: Wire
    what: str
    """What each connection does, as text for `docs/attacks.md`."""
    keys: Keys = "with"
    """Whether the flood is measured with a key, without one, or both, where a key makes a difference."""
    connections: int
    requests: tuple[Request, ...] = ()
    """Sent in turn, again and again. On a socket, the first one is the handshake."""
    messages: tuple[Message, ...] = ()
    """Sent in turn after the handshake. With messages, the flood is on a socket."""
    unsent: int = 0
    """Number of bytes at the end of the request that are not sent. `rest` follows in their place."""
    rest: bytes = b""
    """Sent again and again after the first request."""
    window: int = 1
    """Number of outstanding requests; 0 if the client does not wait for responses."""
    interval: float = 0
    """Seconds between two requests or messages; 0 if the client sends without a pause."""
    reads: Reads = "all"
    leaves_after: int | None = None
    """Number of bytes after which the client leaves and connects again. 0: as soon as the request is sent."""
    is_from_user_address: bool = False
    """Whether the measured user sends each Stop from the address of the flood, on a new connection."""

    @property
    def is_socket(self) -> bool:
        return bool(self.messages)

    @property
    def commands(self) -> set[str]:
        """The types of the socket messages in this flood."""
        return {found for message in self.messages if (found := _command(message))}

    def variants(self) -> list[bool]:
        """Return the variants to measure: True for the flood with an API key, False for the flood without one."""
        return [has_key for has_key, keys in ((True, "with"), (False, "without")) if self.keys in (keys, "both")]

    def uses(self, placeholder: str) -> bool:
        """Whether the flood refers to this object of the flooding user, such as a run or a session."""
        return f"{{{placeholder}}}".encode() in msgspec.json.encode((self.requests, self.messages))


def _command(message: Message) -> str:
    try:
        value = msgspec.json.decode(message.body.encode())
    except msgspec.DecodeError:
        return ""
    return str(value.get("type", "")) if isinstance(value, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def get(*paths: str) -> tuple[Request, ...]:
    return tuple(Request("GET", path) for path in paths)


def post(path: str, text: str, padding: str = "", size: int = 0, headers: str = JSON) -> tuple[Request, ...]:
    return (Request("POST", path, Body(text, padding, size), headers),)


def handshake(query: str = "") -> tuple[Request, ...]:
    headers = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    headers += "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    return (Request("GET", f"/api/v2/ws/{{session}}{query}", headers=headers),)


def text(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(Body(text)) for text in texts)


FEW = 20
SOME = 200
MANY = 500
CROWD = 1000
PIPELINE = 100
"""Number of outstanding requests of a client that pipelines, below the server's limit of buffered requests."""
LARGE = 10 * MB
QUESTION = '"messages":[{"role":"user","content":"go"}]'
LONG_QUESTION = '{"agent":"short","messages":[{"role":"user","content":"{padding}"}]}'
SMALL_VALUES = '{"agent":"short",' + QUESTION + ',"extra":[{padding}{}]}'
NESTED = '{"agent":"short",' + QUESTION + ',"extra":[{padding}0]}'
ARRAYS = "[" * 64 + "]" * 64 + ","
MESSAGES = '{"agent":"short","messages":[{padding}{"role":"user","content":"go"}]}'
MESSAGE = '{"role":"user","content":"a"},'
ASK = '{"agent":"short",' + QUESTION + "}"
ENDLESS = '{"agent":"endless",' + QUESTION + "}"
ASK_SESSION = '{"agent":"endless","session_id":"{session}",' + QUESTION
UPLOAD = Request("POST", "/chat", Body(" "), announced=900_000_000)
FORMATS = ("typed", "tool_calls", "records", "v2")


def connection_floods() -> Iterator[Flood]:
    yield Flood(name="none", wire="connections", what="nothing: the other user alone", keys="without", connections=0)
    yield Flood(
        name="connect-idle",
        wire="connections",
        what="sends nothing",
        keys="without",
        connections=CROWD,
        requests=get("/"),
        unsent=10**6,
        interval=3600,
    )
    yield Flood(
        name="connect-half-request",
        wire="connections",
        what="sends the beginning of a request, then one byte of a header every 0.2 s",
        keys="without",
        connections=CROWD,
        requests=get("/sessions"),
        unsent=2,
        rest=b"x",
        interval=0.2,
    )
    yield Flood(
        name="connect-request-per-second",
        wire="connections",
        what="sends one `GET /sessions` per second",
        keys="both",
        connections=CROWD,
        requests=get("/sessions"),
        window=0,
        interval=1,
    )
    yield Flood(
        name="connect-and-close",
        wire="connections",
        what="connects, closes, and connects again",
        keys="without",
        connections=CROWD,
        requests=get("/"),
        unsent=10**6,
        leaves_after=0,
    )
    yield Flood(
        name="request-and-leave",
        wire="connections",
        what="sends `GET /sessions`, closes the connection without reading, and connects again",
        keys="both",
        connections=CROWD,
        requests=get("/sessions"),
        leaves_after=0,
    )
    yield Flood(
        name="request-and-reconnect",
        wire="connections",
        what="sends `GET /health`, reads the response, and connects again",
        keys="without",
        connections=CROWD,
        requests=get("/health"),
        leaves_after=1,
    )


def own_address_floods() -> Iterator[Flood]:
    """Return floods from the address of the measured user, whose Stops must not wait behind their connections."""
    for flood in connection_floods():
        if flood.connections:
            yield msgspec.structs.replace(flood, name=f"own-{flood.name}", is_from_user_address=True)
    yield Flood(
        name="own-stop-and-reconnect",
        wire="connections",
        what="stops an unknown run, reads the response, and connects again",
        keys="both",
        connections=CROWD,
        requests=post("/runs/run_{number}/cancel", ""),
        leaves_after=1,
        is_from_user_address=True,
    )


def pipeline_floods() -> Iterator[Flood]:
    ways: tuple[tuple[str, Reads, str], ...] = (
        ("unread", "nothing", "reads nothing"),
        ("slow", "slowly", "reads slowly"),
        ("read", "all", "reads all"),
    )
    for name, reads, how in ways:
        yield Flood(
            name=f"pipeline-{name}",
            wire="HTTP",
            what=f"pipelines `GET /sessions` without a pause, and {how}",
            keys="both",
            connections=MANY,
            requests=get("/sessions"),
            window=0,
            reads=reads,
        )
    windowed: tuple[tuple[str, Keys], ...] = (("sessions", "both"), ("health", "without"))
    for name, keys in windowed:
        yield Flood(
            name=f"pipeline-{name}-windowed",
            wire="HTTP",
            what=f"keeps {PIPELINE} `GET /{name}` outstanding, below the limit of buffered requests",
            keys=keys,
            connections=MANY,
            requests=get(f"/{name}"),
            window=PIPELINE,
        )
    yield Flood(
        name="pipeline-one-connection",
        wire="HTTP",
        what="pipelines `GET /health` on one connection",
        keys="without",
        connections=1,
        requests=get("/health"),
        window=0,
    )


def route_floods() -> Iterator[Flood]:
    """Return the floods of HTTP requests in which each connection waits for a response before its next request."""

    def route(
        name: str,
        what: str,
        requests: tuple[Request, ...],
        keys: Keys = "with",
        connections: int = SOME,
        reads: Reads = "all",
    ) -> Flood:
        return Flood(
            name=name, wire="HTTP", what=what, keys=keys, connections=connections, requests=requests, reads=reads
        )

    def cancel(run: str) -> tuple[Request, ...]:
        return post(f"/runs/{run}/cancel", '{"reason":"flood"}')

    def decide(approval: str, decision: str) -> tuple[Request, ...]:
        return post(f"/runs/{approval}", f'{{"decision":"{decision}"}}')

    yield route("probes", "reads the probes", get("/health", "/ready", "/api/v2/health"), "without")
    yield route("page-files", "loads the page and its files", get("/", "/icon.svg", "/theme.js", "{asset}"), "without")
    largest = get("{asset}")
    yield route(
        "page-files-slow", "loads the largest file of the page, and reads slowly", largest, "without", CROWD, "slowly"
    )
    documents = get("/docs", "/openapi.json", "/api/v2/asyncapi.json")
    yield route("documents", "loads the API documentation", documents)
    yield route("agents", "lists the agents, and reads the caller", get("/agents", "/auth/me"))
    yield route("sessions", "lists sessions, and reads one", get("/sessions?limit=200", "/sessions/{session}"))
    rename = Request("PATCH", "/sessions/{session}", Body('{"title":"flood {number}"}'))
    delete = Request("DELETE", "/sessions/{number}")
    yield route("sessions-changed", "renames a session, and deletes unknown ones", (rename, delete))
    run = get("/runs/{run}", "/runs/{long}", "/runs/{long}/input", "/runs/{long}/answer", "/runs/{number}")
    yield route("runs", "reads runs, their questions and answers, and unknown runs", run)
    approvals = get("/runs/{asking}/approvals/{approval}", "/runs/{long}/approvals/{number}")
    yield route("approvals", "reads an open approval, and searches a long run for unknown ones", approvals)
    yield route("tool-results-unknown", "searches a long run for unknown calls", get("/runs/{long}/tools/{number}"))
    result, file = get("/runs/{made}/tools/result?raw=1"), get("/artifacts/{artifact}")
    yield route("tool-results", "reads a tool result of 10 MB", result, connections=100)
    yield route("tool-results-json", "reads it as JSON", get("/runs/{made}/tools/result"), connections=100)
    yield route("artifacts", "downloads a file of 10 MB", file, connections=100)
    for name, what, requests in (
        ("tool-results-slow", "requests a tool result of 10 MB", result),
        ("tool-results-json-slow", "requests it as JSON", get("/runs/{made}/tools/result")),
        ("artifacts-slow", "requests a file of 10 MB", file),
    ):
        yield route(name, f"{what}, and reads slowly", requests, connections=100, reads="slowly")
    yield route("chat", "asks, and waits for the answer", post("/chat", ASK), connections=100)
    busy = post("/chat/stream", ASK_SESSION + "}")
    yield route("chat-busy", "asks in a session that is busy", busy)
    queued = post("/chat", ASK_SESSION + ',"if_busy":"wait"}')
    yield route("chat-queued", "asks in a session that is busy, and waits", queued)
    invalid = post("/chat", '{"messages":[{"role":"user","content":1}],"agent":[]}')
    yield route("chat-invalid", "sends a body with the wrong types", invalid)
    yield route("stop-own", "stops a run that has ended, or ends now", cancel("{run}"))
    yield route("stop-unknown", "stops unknown runs", cancel("{number}"))
    own = "{asking}/approvals/{approval}"
    yield route("decide-own", "sends an invalid decision on an open approval", decide(own, "edit"))
    yield route("decide-again", "approves the same, again and again", decide(own, "approve"))
    yield route("decide-unknown", "approves in unknown runs", decide("{number}/approvals/{number}", "approve"))
    admin = (*get("/admin/users", "/admin/sessions?user=ben"), Request("DELETE", "/admin/sessions/{number}?user=ben"))
    yield route("admin", "uses the routes of administration without that scope", admin)
    yield route("metrics", "reads `/metrics` without that scope", get("/metrics"))
    wrong = Request("GET", "/sessions", authorization="Bearer ll_{number}_wrong")
    yield route("wrong-keys", "sends a different wrong key with each request", (wrong,), "without", connections=MANY)
    token = Request("GET", "/sessions", authorization="Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.{number}")
    yield route("wrong-tokens", "sends invalid JWTs", (token,), "without")
    yield route("login", "logs in with a correct key", post("/auth/login", '{"key":"{key}"}'), "without")
    logins = post("/auth/login", '{"key":"ll_{number}_wrong"}') + post("/auth/logout", "")
    yield route("login-wrong", "logs in with wrong keys, and logs out", logins, "without")
    yield route("options", "sends `OPTIONS`", (Request("OPTIONS", "/chat"), Request("OPTIONS", "/health")))
    yield route("head", "sends `HEAD`", (Request("HEAD", "/sessions"), Request("HEAD", "/")), "without")
    unknown = (*get("/unknown/{number}", "/assets/{number}.js"), Request("PUT", "/sessions"))
    yield route("unknown-paths", "sends unknown paths and methods", unknown, "both")
    long_path = get(f"/sessions?after={'x' * 30_000}")
    yield route("long-paths", "sends URLs of 30 KB", long_path, "without")
    headers = "".join(f"x-{number}: {'y' * 50}\r\n" for number in range(900))
    yield route("many-headers", "sends 900 headers", (Request("GET", "/sessions", headers=headers),), "without")
    headers = "".join(f"{number % 100}:\r\n" for number in range(6000))
    yield route(
        "short-headers", "sends 6,000 short headers", (Request("GET", "/sessions", headers=headers),), "without"
    )
    cookie = 'cookie: a="' + '\\"' * 10_000 + '"\r\n'
    escapes = (Request("GET", "/sessions", headers=cookie),)
    yield route("cookie-of-escapes", "sends a cookie of 10,000 escape sequences", escapes, "without")
    v2 = get("/api/v2/sessions", "/api/v2/sessions/{session}", "/api/v2/sessions/{session}/messages?limit=10000")
    yield route("v2-sessions", "lists sessions, reads one and its messages (v2)", v2)
    created = (*post("/api/v2/sessions", '{"max_steps":5}'), Request("DELETE", "/api/v2/sessions/{number}"))
    yield route("v2-sessions-created", "creates sessions, and deletes unknown ones (v2)", created)


def body_floods() -> Iterator[Flood]:
    def bodies(name: str, what: str, requests: tuple[Request, ...], keys: Keys = "with") -> Flood:
        return Flood(name=name, wire="bodies", what=what, keys=keys, connections=FEW, requests=requests)

    yield Flood(
        name="half-body",
        wire="bodies",
        what="announces a body for `POST /chat`, and sends one byte of it every 0.2 s",
        keys="both",
        connections=CROWD,
        requests=(UPLOAD,),
        rest=b" ",
        interval=0.2,
    )
    yield Flood(
        name="endless-body",
        wire="bodies",
        what="announces a body of 900 MB for `POST /chat`, and sends it without a pause",
        keys="both",
        connections=MANY,
        requests=(UPLOAD,),
        rest=b" " * 64 * KB,
        window=0,
    )
    yield Flood(
        name="endless-body-of-line-ends",
        wire="bodies",
        what="the same, of line ends",
        keys="both",
        connections=MANY,
        requests=(UPLOAD,),
        rest=b"\r\n" * 32 * KB,
        window=0,
    )
    yield Flood(
        name="endless-chunked-body",
        wire="bodies",
        what="sends a chunked body for `POST /chat`, in chunks of 1 KB, without a pause",
        keys="both",
        connections=MANY,
        requests=(Request("POST", "/chat", is_chunked=True),),
        rest=(b"400\r\n" + b" " * KB + b"\r\n") * 64,
        window=0,
    )
    yield Flood(
        name="endless-chunked-body-of-bytes",
        wire="bodies",
        what="the same, in chunks of one byte",
        connections=FEW,
        requests=(Request("POST", "/chat", is_chunked=True),),
        rest=b"1\r\n \r\n" * 10 * KB,
        window=0,
    )
    yield bodies("body-chat", "sends 10 MB, one text, to `/chat`", post("/chat", LONG_QUESTION, "x", LARGE), "both")
    yield bodies("body-chat-stream", "the same to `/chat/stream`", post("/chat/stream", LONG_QUESTION, "x", LARGE))
    messages = post("/chat", MESSAGES, MESSAGE, 9_000 * len(MESSAGE))
    yield bodies("body-of-messages", "sends 9,000 short messages to `/chat`", messages)
    small, numbers = post("/chat", SMALL_VALUES, "{},", LARGE), post("/chat", NESTED, "1.5,", LARGE)
    nested, escapes = post("/chat", NESTED, ARRAYS, LARGE), post("/chat", LONG_QUESTION, "\\u00e9", LARGE)
    yield bodies("body-of-small-values", "sends 10 MB of empty objects", small)
    yield bodies("body-of-numbers", "sends 10 MB of numbers", numbers)
    yield bodies("body-nested", "sends 10 MB of arrays in arrays", nested)
    yield bodies("body-of-escapes", "sends 10 MB of escape sequences", escapes)
    v2 = post("/api/v2/sessions", SMALL_VALUES, "{},", LARGE)
    yield bodies("body-v2", "sends 10 MB of empty objects to `POST /api/v2/sessions`", v2)
    yield bodies("body-junk", "sends 10 MB that are not JSON", post("/chat", "{padding}", "\x00\x7f", LARGE))
    plain = post("/chat", LONG_QUESTION, "x", LARGE, headers="content-type: text/plain\r\n")
    yield bodies("body-wrong-type", "sends 10 MB as `text/plain`", plain, "both")
    title = (Request("PATCH", "/sessions/{session}", Body('{"title":"{padding}"}', "x", LARGE)),)
    yield bodies("body-title", "sends a title of 10 MB", title)
    signals = post("/runs/{run}/cancel", '{"reason":"{padding}"}', "x", LARGE)
    signals += post("/runs/{asking}/approvals/{approval}", '{"decision":"edit","reason":"{padding}"}', "x", LARGE)
    yield bodies("body-signals", "sends a Stop and an invalid decision of 10 MB", signals)
    login = post("/auth/login", '{"key":"{padding}"}', "x", LARGE)
    yield bodies("body-login", "sends 10 MB to `/auth/login`", login, "without")
    unexpected = (Request("GET", "/sessions", Body("{padding}", "x", LARGE)), *get("/health"))
    yield bodies("body-get", "sends a body of 10 MB with `GET /sessions`", unexpected, "both")


def stream_floods() -> Iterator[Flood]:
    def stream(
        name: str,
        what: str,
        requests: tuple[Request, ...],
        leaves_after: int | None = None,
        connections: int = 100,
        reads: Reads = "all",
    ) -> Flood:
        return Flood(
            name=name,
            wire="SSE",
            what=what,
            connections=connections,
            requests=requests,
            reads=reads,
            leaves_after=leaves_after,
        )

    for format_ in FORMATS:
        replay = get(f"/runs/{{long}}/stream?format={format_}&after=0")
        yield stream(f"replay-{format_}", f"replays a run of 10,000 events as `{format_}`, again and again", replay)
    replay = get("/runs/{long}/stream?format=records&after=0")
    yield stream("replay-and-leave", "opens that replay, reads little, and reconnects", replay, leaves_after=2000)
    live = get("/runs/{run}/stream?format=typed&after=0")
    yield stream("live-and-leave", "opens the stream of a live run, reads little, and reconnects", live, leaves_after=1)
    session = get("/sessions/{session}/stream?after=0")
    yield stream("session-and-leave", "the same with the stream of a session", session, leaves_after=1)
    yield Flood(
        name="stream-without-key",
        wire="SSE",
        what="opens streams without a key, and reconnects",
        keys="without",
        connections=MANY,
        requests=get("/runs/{run}/stream?after=0"),
        leaves_after=1,
    )
    unread = get("/runs/{long}/stream?format=typed&after=0", "/runs/{run}/stream?format=records&after=0")
    yield stream("streams-unread", "opens a stream, and reads nothing", unread, reads="nothing")
    yield stream("streams-slow", "opens a stream, and reads slowly", unread, reads="slowly")
    ask = post("/chat/stream", ENDLESS)
    yield stream("ask-and-leave", "starts a run, reads its first event, and leaves", ask, leaves_after=1)
    short = post("/chat/stream?format=tool_calls", ASK)
    yield stream("ask-short", "starts short runs, one after another", short, connections=FEW, leaves_after=200)


def socket_floods() -> Iterator[Flood]:
    def socket(
        name: str,
        what: str,
        messages: tuple[Message, ...],
        connections: int = FEW,
        reads: Reads = "all",
        keys: Keys = "with",
        interval: float = 0,
        leaves_after: int | None = None,
        query: str = "",
    ) -> Flood:
        return Flood(
            name=f"socket-{name}",
            wire="socket",
            what=what,
            keys=keys,
            connections=connections,
            requests=handshake(query),
            messages=messages,
            window=0,
            interval=interval,
            reads=reads,
            leaves_after=leaves_after,
        )

    ping = text('{"type":"ping"}')
    state = text('{"type":"get_state"}')
    history = text('{"type":"get_messages","limit":10000}')
    control = tuple(Message(Body("x" * 100), opcode) for opcode in (PING, PONG))
    for name, what, messages in (
        ("ping", "sends `ping`", ping),
        ("get-state", "sends `get_state`", state),
        ("get-messages", "sends `get_messages`", history),
        ("cancel", "sends `cancel`", text('{"type":"cancel"}')),
        ("malformed", "sends malformed JSON", text('{"type":')),
        ("protocol-ping", "sends ping and pong frames", control),
    ):
        yield socket(name, what, messages)
        yield socket(f"{name}-unread", f"{what}, and reads nothing", messages, reads="nothing")
    query = text('{"type":"query","query":"go"}', '{"type":"query","query":""}')
    yield socket("query-refused", "sends `query` while a run is live, and an empty one", query)
    approve = text('{"type":"approve","approval_id":"{number}"}')
    yield socket("approve", "approves unknown approvals", approve)
    resume = text('{"type":"resume","after":"0"}')
    yield socket("resume", "resumes at the beginning of the session", resume)
    yield socket("unknown", "sends an unknown type", text('{"type":"unknown","{number}":[]}'))
    yield socket("binary", "sends binary messages", (Message(Body("x" * 100), BINARY),))
    fragments = (Message(Body("{"), TEXT, is_final=False), *(Message(Body(""), 0, is_final=False) for _ in range(5000)))
    yield socket("fragments", "sends messages in empty fragments", fragments)
    large = Message(Body('{"type":"ping","extra":[{padding}{}]}', "{},", MB - 100))
    yield socket("large", "sends `ping` with 1 MB of empty objects", (large,))
    large_query = Message(Body('{"type":"query","query":"{padding}"}', "x", MB - 100))
    yield socket("large-query", "sends a `query` of 1 MB while a run is live", (large_query,))
    part = Body("{padding}", "x", 5 * MB)
    parts = (Message(part, TEXT, is_final=False), *(Message(part, 0, is_final=False) for _ in range(3)))
    yield socket("incomplete", "sends a message of 20 MB in parts, one per second", parts, 100, interval=1)
    for name, what, messages in (
        ("ping", "sends 48 `ping` per second, which is allowed, on 100 sockets", ping),
        ("cancel", "the same with `cancel`", text('{"type":"cancel"}')),
        ("malformed", "the same with malformed JSON", text('{"type":')),
    ):
        yield socket(f"{name}-at-limit", what, messages, connections=100, interval=0.021)
    what = "connects, sends `ping`, and connects again"
    yield socket("reconnect", what, ping, MANY, keys="both", leaves_after=300)
    what = "connects at the beginning of a long session, reads little, and connects again"
    yield socket("replay", what, ping, 100, leaves_after=20_000, query="?format=records&packed=1&after=0")


FLOODS: dict[str, Flood] = {
    flood.name: flood
    for floods in (
        connection_floods,
        own_address_floods,
        pipeline_floods,
        route_floods,
        body_floods,
        stream_floods,
        socket_floods,
    )
    for flood in floods()
}
