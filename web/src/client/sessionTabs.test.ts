// @vitest-environment jsdom

/** A session with lost connections, refusals and a second tab. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ApprovalItem } from "../log/view";
import { FakeSocket, newestSocket } from "../testing/fakeSocket";
import { transcript } from "../testing/golden";
import { loadOutbox, type OutboxMessage, saveOutbox } from "./outbox";
import { SessionStore } from "./session";
import { writeStored } from "./storage";

const records = transcript("one_tool");
const asking = transcript("approval");
const packed = (all: typeof records, from: number, to: number) => ({
  session_id: "s",
  cursor: String(to),
  records: all.slice(from, to),
});
const question = "What is limelight?";

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
const reconnected = () => {
  newestSocket().drop();
  vi.advanceTimersByTime(2000);
  newestSocket().open();
};
const texts = () => now().pending.map((one) => one.text);
const sent = () => newestSocket().sent.map((one) => one.query);
const pending = (requestId: string, text: string, at = Date.now()): OutboxMessage => ({
  requestId,
  text,
  ifBusy: "wait",
  at,
  error: null,
  runId: null,
});
/** Changes storage as another tab does. */
const elsewhere = (one: OutboxMessage, isThere: boolean) => {
  const key = `outbox.s.${one.requestId}`;
  writeStored(key, isThere ? one : null);
  window.dispatchEvent(new StorageEvent("storage", { key: `limelight.${key}` }));
};

describe("a decision", () => {
  const place = asking.findIndex((record) => record.event.kind === "approval_requested") + 1;
  const resolved = asking.findIndex((record) => record.event.kind === "approval_resolved") + 1;
  const asked = () =>
    now()
      .view.runs.flatMap((run) => run.items)
      .find((item) => item.kind === "approval") as ApprovalItem;
  beforeEach(() => {
    opened();
    newestSocket().receive(packed(asking, 0, place));
    vi.advanceTimersByTime(100);
    store.decide(asked(), "reject", { reason: "no" });
  });

  it("a decision lost with the connection is sent again until it is confirmed", () => {
    const command = newestSocket().sent[0];
    expect(command).toMatchObject({ type: "approve", decision: "reject", reason: "no" });
    reconnected();
    expect(newestSocket().sent).toEqual([command]);
    expect(now().deciding.size).toBe(1);
    newestSocket().receive({ type: "decided", approval_id: asked().approvalId, decision: "reject" });
    expect(now().deciding.size).toBe(0);
    reconnected();
    expect(newestSocket().sent).toEqual([]);
  });

  it("a decision in the log is not sent again", () => {
    newestSocket().receive(packed(asking, place, resolved));
    vi.advanceTimersByTime(100);
    expect(now().deciding.size).toBe(0);
    reconnected();
    expect(newestSocket().sent).toEqual([]);
  });

  it("a redundant decision causes no notice, a late one does", () => {
    const late = { type: "error", message: "decided already", error_code: "already_decided" };
    reconnected();
    newestSocket().receive(late);
    expect(now()).toMatchObject({ notice: null, deciding: new Set() });
    store.decide(asked(), "approve");
    newestSocket().receive(late);
    expect(now()).toMatchObject({ notice: "decided already", deciding: new Set() });
  });
});

describe("messages", () => {
  it("four messages are sent at a time, and one more that interrupts", () => {
    opened();
    for (const text of ["1", "2", "3", "4", "5", "6"]) store.ask(text, "wait");
    expect(sent()).toEqual(["1", "2", "3", "4"]);
    newestSocket().receive({ type: "accepted", request_id: newestSocket().sent[0]?.request_id, run_id: "run_1" });
    expect(sent()).toEqual(["1", "2", "3", "4", "5"]);
    store.ask("now", "cancel");
    expect(sent().slice(5)).toEqual(["now"]);
    newestSocket().receive({
      type: "error",
      message: "no",
      error_code: "invalid",
      request_id: newestSocket().sent[1]?.request_id,
    });
    newestSocket().receive({
      type: "error",
      message: "no",
      error_code: "invalid",
      request_id: newestSocket().sent[2]?.request_id,
    });
    expect(sent().slice(6)).toEqual(["6"]);
  });

  it("a message that was not sent is withdrawn locally", () => {
    opened();
    for (const text of ["1", "2", "3", "4", "5"]) store.ask(text, "wait");
    const [last] = now().pending.slice(-1);
    if (last) store.withdraw(last);
    expect(texts()).toEqual(["1", "2", "3", "4"]);
    expect(newestSocket().sent).toHaveLength(4);
  });

  it("a message over the limit in bytes is refused locally", () => {
    opened();
    store.ask("é".repeat(499_000), "wait");
    store.ask("é".repeat(500_000), "wait");
    expect(newestSocket().sent).toHaveLength(1);
    expect(now().pending.map((one) => one.error)).toEqual([null, "too long: at most 1 MB"]);
  });

  it("a message with the text of an earlier run stays through a reload until the server names its run", () => {
    saveOutbox("s", [], [pending("r1", question)]);
    opened(records.length);
    newestSocket().receive(packed(records, 0, records.length));
    vi.advanceTimersByTime(100);
    expect(now().loading).toBeNull();
    expect(texts()).toEqual([question]);
    newestSocket().receive({ type: "accepted", request_id: "r1", run_id: "run_0" });
    expect(texts()).toEqual([]);
    expect(loadOutbox("s")).toEqual([]);
  });

  it("a run that started before a message is not its run", () => {
    opened();
    vi.setSystemTime(Date.now() + 60_000);
    store.ask(question, "wait");
    newestSocket().receive(packed(records, 0, 2));
    vi.advanceTimersByTime(100);
    expect(now().view.runs).toMatchObject([{ input: question }]);
    expect(texts()).toEqual([question]);
  });

  it("a message refused by a shutdown is sent again", () => {
    opened();
    store.ask("hello", "wait");
    const [id] = now().pending.map((one) => one.requestId);
    newestSocket().receive({ type: "error", message: "wait", error_code: "shutting_down", request_id: id });
    expect(now().pending).toMatchObject([{ error: null }]);
    reconnected();
    expect(newestSocket().sent).toMatchObject([{ request_id: id }]);
  });
});

describe("another tab", () => {
  it("a message of another tab is shown here, and sent here only after a reconnect", () => {
    opened();
    store.ask("mine", "wait");
    elsewhere(pending("r2", "theirs", Date.now() + 10), true);
    expect(texts()).toEqual(["mine", "theirs"]);
    expect(sent()).toEqual(["mine"]);
    reconnected();
    expect(sent()).toEqual(["mine", "theirs"]);
  });

  it("a message that another tab removes stays removed", () => {
    opened();
    store.ask("hello", "wait");
    const [one] = now().pending;
    if (one) elsewhere(one, false);
    expect(texts()).toEqual([]);
    newestSocket().receive({ type: "accepted", request_id: one?.requestId, run_id: "run_9" });
    expect(loadOutbox("s")).toEqual([]);
  });

  it("a message that another tab withdrew is removed when the server reports it", () => {
    opened();
    store.ask("hello", "wait");
    const [one] = now().pending;
    writeStored(`outbox.s.${one?.requestId}`, null);
    const stopped = { type: "error", message: "Query was stopped while it waited", error_code: "session_busy" };
    newestSocket().receive({ ...stopped, request_id: one?.requestId });
    expect(texts()).toEqual([]);
    store.ask("still wanted", "wait");
    newestSocket().receive({ ...stopped, request_id: now().pending[0]?.requestId });
    expect(now().pending).toMatchObject([{ text: "still wanted", error: stopped.message }]);
  });
});

describe("a bad cursor", () => {
  it.each([
    [404, "deleted", 1],
    [200, "again", 2],
  ])("is resolved when the server answers %s", async (status, _, sockets) => {
    opened();
    newestSocket().receive(packed(records, 0, 4));
    vi.advanceTimersByTime(100);
    const answers = [502, 0, status];
    vi.stubGlobal("fetch", async () => {
      const next = answers.shift() ?? 0;
      if (next === 0) throw new TypeError("network");
      return new Response("{}", { status: next });
    });
    newestSocket().receive({ type: "error", message: "the log ends at 0", error_code: "bad_cursor" });
    newestSocket().drop(1008, "bad_cursor");
    await vi.advanceTimersByTimeAsync(500);
    expect(now().connection).toMatchObject({ kind: "lost" });
    await vi.advanceTimersByTimeAsync(1000);
    expect(answers).toEqual([status]);
    store.reconnect();
    await vi.advanceTimersByTimeAsync(0);
    expect(answers).toEqual([]);
    expect(FakeSocket.all).toHaveLength(sockets);
    if (status === 404) expect(now().connection).toMatchObject({ kind: "ended", why: "deleted" });
  });
});
