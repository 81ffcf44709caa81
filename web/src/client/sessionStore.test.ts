// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket, newestSocket } from "../testing/fakeSocket";
import { transcript } from "../testing/goldenTranscripts";
import { loadOutbox, saveOutbox } from "./outbox";
import { SessionStore } from "./sessionStore";

const records = transcript("one_tool");
const question = "What is limelight?";

let store: SessionStore;
beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(records[0]?.at ?? 0);
  vi.stubGlobal("WebSocket", FakeSocket);
  FakeSocket.all = [];
  localStorage.clear();
  store = new SessionStore("s");
});
afterEach(() => {
  store.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const now = () => store.getSnapshot();
const receive = (from: number, to: number, all = records) => {
  newestSocket().receive({ session_id: "s", cursor: String(to), records: all.slice(from, to) });
  vi.advanceTimersByTime(100);
};
const reconnected = () => {
  newestSocket().drop();
  vi.advanceTimersByTime(2000);
  newestSocket().open();
};

describe("the log", () => {
  it("a long log is shown when it is complete", () => {
    newestSocket().open(records.length);
    expect(now().loading).toBe(0);
    receive(0, 3);
    expect(now().loading).toBeCloseTo(3 / records.length);
    expect(now().view.seq).toBe(0);
    receive(3, records.length);
    expect(now().loading).toBeNull();
    expect(now().view.runs[0]?.state).toBe("finished");
  });

  it("a reconnect resumes after the last record and duplicates nothing", () => {
    newestSocket().open();
    receive(0, 4);
    newestSocket().drop();
    expect(now()).toMatchObject({ connection: { kind: "lost" }, view: { seq: 4 } });
    vi.advanceTimersByTime(2000);
    expect(newestSocket().url).toContain("after=4");
    newestSocket().open(records.length);
    receive(2, records.length);
    expect(now().connection).toEqual({ kind: "open" });
    const { runs } = now().view;
    expect(runs).toHaveLength(1);
    expect(runs[0]?.items.filter((item) => item.kind === "tool")).toHaveLength(1);
  });

  it("a deleted session keeps what it shows", () => {
    newestSocket().open();
    receive(0, 4);
    newestSocket().drop(4404, "session deleted");
    vi.advanceTimersByTime(60_000);
    expect(now()).toMatchObject({ connection: { kind: "ended", why: "deleted" }, view: { seq: 4 } });
    expect(FakeSocket.all).toHaveLength(1);
  });

  it.each([
    { status: 404, connection: { kind: "ended", why: "deleted" }, seq: 4, sockets: 1 },
    { status: 200, connection: { kind: "open" }, seq: 0, sockets: 2 },
  ])("after a bad cursor, the page asks until the server answers $status", async (expected) => {
    newestSocket().open();
    receive(0, 4);
    const answers = [502, 0, expected.status];
    vi.stubGlobal("fetch", async () => {
      const status = answers.shift() ?? 0;
      if (status === 0) throw new TypeError("network");
      return new Response("{}", { status });
    });
    newestSocket().receive({ type: "error", message: "the log ends at 0", error_code: "bad_cursor" });
    newestSocket().drop(1008, "bad_cursor");
    await vi.advanceTimersByTimeAsync(500);
    expect(now().connection).toMatchObject({ kind: "lost" });
    await vi.advanceTimersByTimeAsync(1000);
    expect(answers).toEqual([expected.status]);
    store.reconnect();
    await vi.advanceTimersByTimeAsync(0);
    expect(FakeSocket.all).toHaveLength(expected.sockets);
    if (expected.sockets === 2) newestSocket().open();
    expect(now().view.seq).toBe(expected.seq);
    expect(now().connection).toMatchObject(expected.connection);
  });
});

describe("messages", () => {
  it("a message that the server's limit refuses is returned and can be sent again", () => {
    store.ask("one too many", "wait");
    newestSocket().open();
    newestSocket().receive({ type: "error", message: "you have 3 sessions", error_code: "too_many_sessions" });
    newestSocket().drop(1008, "too_many_sessions");
    const [given] = now().pending;
    expect(given).toMatchObject({ text: "one too many", error: "you have 3 sessions" });
    if (given !== undefined) store.retry(given);
    expect(FakeSocket.all).toHaveLength(2);
    newestSocket().open();
    expect(now().notice).toBeNull();
    expect(newestSocket().sent).toMatchObject([{ type: "query", query: "one too many" }]);
  });

  it("a temporary refusal keeps the message until the reconnect", () => {
    store.ask("later", "wait");
    const busy = { type: "error", message: "you have 20 streams", error_code: "too_many_streams", retry_after: 3 };
    newestSocket().receive(busy);
    newestSocket().drop(1008, "too_many_streams");
    expect(now()).toMatchObject({ notice: null, connection: { kind: "lost", reason: "you have 20 streams" } });
    expect(now().pending).toMatchObject([{ text: "later", error: null }]);
    vi.advanceTimersByTime(2999);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    newestSocket().open();
    expect(now()).toMatchObject({ notice: null, connection: { kind: "open" } });
    expect(newestSocket().sent).toMatchObject([{ type: "query", query: "later" }]);
  });

  it("a message is pending until its run is in the log", () => {
    newestSocket().open();
    store.ask(question, "wait");
    receive(0, 2);
    expect(now()).toMatchObject({ pending: [], view: { runs: [{ input: question }] } });
  });

  it("a message with the text of a run in the log stays until the server names its run", () => {
    store.close();
    saveOutbox("s", [], [{ requestId: "r1", text: question, ifBusy: "wait", at: 0, error: null, runId: null }]);
    store = new SessionStore("s", "codact");
    expect(newestSocket().url).toContain("agent_type=codact");
    newestSocket().open(records.length);
    expect(newestSocket().sent).toMatchObject([{ query: question, request_id: "r1" }]);
    receive(0, records.length);
    expect(now()).toMatchObject({ loading: null, pending: [{ text: question }] });
    newestSocket().receive({ type: "accepted", request_id: "r1", run_id: "run_0" });
    expect(now().pending).toEqual([]);
    expect(loadOutbox("s")).toEqual([]);
  });
});

describe("commands", () => {
  it("the user can reconnect after a permanent refusal", () => {
    newestSocket().open();
    newestSocket().receive({ type: "error", message: "the key is gone", error_code: "unauthorized" });
    newestSocket().drop(1008, "unauthorized");
    expect(now()).toMatchObject({ notice: "the key is gone", connection: { kind: "ended", why: "refused" } });
    store.reconnect();
    newestSocket().open();
    expect(now()).toMatchObject({ notice: null, connection: { kind: "open" } });
  });

  it("a stop that could not be sent is reported", () => {
    newestSocket().open();
    newestSocket().drop();
    store.stop();
    expect(now().notice).toMatch(/not stopped/);
  });
});

describe("a decision", () => {
  const asking = transcript("approval");
  const requested = asking.findIndex((record) => record.event.kind === "approval_requested") + 1;
  const resolved = asking.findIndex((record) => record.event.kind === "approval_resolved") + 1;
  const approval = () => {
    const item = now().view.runs[0]?.items.find((one) => one.kind === "approval");
    if (item === undefined) throw new Error("no approval is in the log");
    return item;
  };
  beforeEach(() => {
    newestSocket().open();
    receive(0, requested, asking);
    store.decide(approval(), "reject", { reason: "no" });
  });

  it("a decision lost with the connection is sent again until it is confirmed", () => {
    const command = newestSocket().sent[0];
    expect(command).toMatchObject({ type: "approve", decision: "reject", reason: "no" });
    reconnected();
    expect(newestSocket().sent).toEqual([command]);
    expect(now().deciding.size).toBe(1);
    newestSocket().receive({ type: "decided", approval_id: approval().approvalId, decision: "reject" });
    expect(now().deciding.size).toBe(0);
    reconnected();
    expect(newestSocket().sent).toEqual([]);
  });

  it("a decision in the log is not sent again", () => {
    receive(requested, resolved, asking);
    expect(now().deciding.size).toBe(0);
    reconnected();
    expect(newestSocket().sent).toEqual([]);
  });

  it("a redundant decision causes no notice, a late one does", () => {
    const late = { type: "error", message: "decided already", error_code: "already_decided" };
    reconnected();
    newestSocket().receive(late);
    expect(now()).toMatchObject({ notice: null, deciding: new Set() });
    store.decide(approval(), "approve");
    newestSocket().receive(late);
    expect(now()).toMatchObject({ notice: "decided already", deciding: new Set() });
  });
});
