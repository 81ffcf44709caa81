// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket, newestSocket } from "../testing/fakeSocket";
import { transcript } from "../testing/golden";
import { loadOutbox, saveOutbox } from "./outbox";
import { SessionStore } from "./session";

const records = transcript("one_tool");
const packed = (from: number, to: number) => ({
  session_id: "s",
  cursor: String(to),
  records: records.slice(from, to),
});

describe("a session", () => {
  let store: SessionStore;
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(records[0]?.at ?? 0);
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    localStorage.clear();
  });
  afterEach(() => {
    store.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
  const now = () => store.getSnapshot();
  const opened = (cursor = 0) => {
    store = new SessionStore("s");
    newestSocket().open(cursor);
  };

  it("a long log is shown when it is complete", () => {
    opened(records.length);
    expect(now().loading).toBe(0);
    newestSocket().receive(packed(0, 3));
    vi.advanceTimersByTime(100);
    expect(now().loading).toBeCloseTo(3 / records.length);
    expect(now().view.seq).toBe(0);
    newestSocket().receive(packed(3, records.length));
    vi.advanceTimersByTime(100);
    expect(now().loading).toBeNull();
    expect(now().view.runs[0]?.state).toBe("finished");
  });

  it("a message that the server's limit refuses is returned and can be sent again", () => {
    store = new SessionStore("s");
    store.ask("one too many", "wait");
    newestSocket().open(0);
    newestSocket().receive({ type: "error", message: "you have 3 sessions", error_code: "too_many_sessions" });
    newestSocket().drop(1008, "too_many_sessions");
    const [given] = now().pending;
    expect(given).toMatchObject({ text: "one too many", error: "you have 3 sessions" });
    if (given !== undefined) store.retry(given);
    expect(FakeSocket.all).toHaveLength(2);
    newestSocket().open(0);
    expect(now().notice).toBeNull();
    expect(newestSocket().sent).toMatchObject([{ type: "query", query: "one too many" }]);
  });

  it("a temporary refusal keeps the message until the reconnect", () => {
    store = new SessionStore("s");
    store.ask("later", "wait");
    const busy = { type: "error", message: "you have 20 streams", error_code: "too_many_streams", retry_after: 3 };
    newestSocket().receive(busy);
    newestSocket().drop(1008, "too_many_streams");
    expect(now()).toMatchObject({ notice: null, connection: { kind: "lost", reason: "you have 20 streams" } });
    expect(now().pending).toMatchObject([{ text: "later", error: null }]);
    vi.advanceTimersByTime(2999);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    newestSocket().open(0);
    expect(now()).toMatchObject({ notice: null, connection: { kind: "open" } });
    expect(newestSocket().sent).toMatchObject([{ type: "query", query: "later" }]);
  });

  it("the user can reconnect after a permanent refusal", () => {
    opened();
    newestSocket().receive({ type: "error", message: "the key is gone", error_code: "unauthorized" });
    newestSocket().drop(1008, "unauthorized");
    expect(now()).toMatchObject({ notice: "the key is gone", connection: { kind: "ended", why: "refused" } });
    store.reconnect();
    newestSocket().open(0);
    expect(now()).toMatchObject({ notice: null, connection: { kind: "open" } });
  });

  it("a reconnect resumes after the last record and duplicates nothing", () => {
    opened();
    newestSocket().receive(packed(0, 4));
    vi.advanceTimersByTime(100);
    newestSocket().drop();
    expect(now().connection).toMatchObject({ kind: "lost" });
    expect(now().view.seq).toBe(4);
    vi.advanceTimersByTime(2000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(newestSocket().url).toContain("after=4");
    newestSocket().open(records.length);
    newestSocket().receive(packed(2, records.length));
    vi.advanceTimersByTime(100);
    expect(now().connection).toEqual({ kind: "open" });
    const { runs } = now().view;
    expect(runs).toHaveLength(1);
    expect(runs[0]?.items.filter((item) => item.kind === "tool")).toHaveLength(1);
  });

  it("the delay between attempts grows, and the start of the disconnect stays", () => {
    opened();
    newestSocket().drop();
    const wait = () => (lost().next - Date.now()) / 1000;
    const lost = () => {
      const { connection: link } = now();
      if (link.kind !== "lost") throw new Error(`the link is ${link.kind}`);
      return link;
    };
    const { since } = lost();
    expect(wait()).toBeLessThan(1);
    for (let attempt = 0; attempt < 20; attempt++) {
      vi.advanceTimersByTime(lost().next - Date.now() + 1);
      newestSocket().drop();
    }
    expect(FakeSocket.all).toHaveLength(21);
    expect(lost().since).toBe(since);
    expect(wait()).toBeGreaterThanOrEqual(6);
  });

  it("a silent server gets a ping, and a deaf one is left", () => {
    opened();
    vi.advanceTimersByTime(21_000);
    expect(newestSocket().sent).toContainEqual({ type: "ping" });
    vi.advanceTimersByTime(10_000);
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("a message keeps its id through a reload and a reconnect", () => {
    opened();
    store.ask("What is limelight?", "wait");
    const id = newestSocket().sent[0]?.request_id;
    expect(newestSocket().sent[0]).toMatchObject({ type: "query", query: "What is limelight?", if_busy: "wait" });
    store.close();
    store = new SessionStore("s");
    expect(now().pending).toMatchObject([{ text: "What is limelight?", error: null }]);
    newestSocket().open();
    expect(newestSocket().sent[0]).toMatchObject({ request_id: id });
  });

  it.each(["before", "after"])("a message is shown once if the acceptance comes %s the run", (order) => {
    opened();
    store.ask("What is limelight?", "wait");
    const accepted = { type: "accepted", request_id: newestSocket().sent[0]?.request_id, run_id: "run_0" };
    if (order === "before") newestSocket().receive(accepted);
    newestSocket().receive(packed(0, 2));
    vi.advanceTimersByTime(100);
    if (order === "after") {
      expect(now().pending).toEqual([]);
      newestSocket().receive(accepted);
    }
    expect(now().pending).toEqual([]);
    expect(loadOutbox("s")).toEqual([]);
  });

  it("a refused message shows the reason and is sent again only on retry", () => {
    opened();
    store.ask("hello", "wait");
    const first = newestSocket().sent[0]?.request_id;
    newestSocket().receive({ type: "error", message: "too many wait", error_code: "queue_full", request_id: first });
    expect(now().pending[0]?.error).toBe("too many wait");
    newestSocket().drop();
    vi.advanceTimersByTime(2000);
    newestSocket().open();
    expect(newestSocket().sent).toEqual([]);
    const [refused] = now().pending;
    if (refused) store.retry(refused);
    expect(newestSocket().sent[0]).toMatchObject({ query: "hello" });
    expect(newestSocket().sent[0]?.request_id).not.toBe(first);
  });

  it("a queued message can be withdrawn", () => {
    opened();
    store.ask("hello", "wait");
    const [waiting] = now().pending;
    if (waiting) store.withdraw(waiting);
    expect(newestSocket().sent[1]).toEqual({ type: "cancel", request_id: waiting?.requestId });
    expect(now().pending).toEqual([]);
  });

  it("a deleted session is not recreated after a bad cursor", async () => {
    opened();
    newestSocket().receive(packed(0, 4));
    vi.advanceTimersByTime(100);
    vi.stubGlobal("fetch", async () => new Response("{}", { status: 404 }));
    newestSocket().drop();
    vi.advanceTimersByTime(2000);
    const last = newestSocket();
    last.open();
    last.receive({ type: "error", message: "the log ends at 0", error_code: "bad_cursor" });
    last.drop(1008, "bad_cursor");
    await vi.waitFor(() => expect(now().connection).toMatchObject({ kind: "ended", why: "deleted" }));
    vi.advanceTimersByTime(60_000);
    expect(newestSocket()).toBe(last);
    expect(now().view.seq).toBe(4);
  });

  it("another session of the same id is loaded from the start after a bad cursor", async () => {
    opened();
    newestSocket().receive(packed(0, 4));
    vi.advanceTimersByTime(100);
    vi.stubGlobal("fetch", async () => new Response("{}", { status: 200 }));
    newestSocket().receive({ type: "error", message: "the log ends at 0", error_code: "bad_cursor" });
    await vi.waitFor(() => expect(FakeSocket.all).toHaveLength(2));
    expect(newestSocket().url).toContain("after=0");
    expect(now().view.seq).toBe(0);
  });

  it("a deleted session keeps what it shows", () => {
    opened();
    newestSocket().receive(packed(0, 4));
    vi.advanceTimersByTime(100);
    newestSocket().drop(4404, "session deleted");
    vi.advanceTimersByTime(60_000);
    expect(now().connection).toMatchObject({ kind: "ended", why: "deleted" });
    expect(FakeSocket.all).toHaveLength(1);
  });

  it("a stop that could not be sent is reported", () => {
    opened();
    newestSocket().drop();
    store.stop();
    expect(now().notice).toMatch(/not stopped/);
  });

  it("the first message of a new session is sent with its agent", () => {
    saveOutbox("s", [], [{ requestId: "r1", text: "hi", ifBusy: "wait", at: 0, error: null, runId: null }]);
    store = new SessionStore("s", "codact");
    expect(newestSocket().url).toContain("agent_type=codact");
    newestSocket().open();
    expect(newestSocket().sent).toMatchObject([{ query: "hi", request_id: "r1" }]);
  });
});
