// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EMPTY, type SessionView } from "../log/viewModel";
import { sampleRun } from "../testing/sampleRuns";
import { writeStored } from "./browserStorage";
import { MessageSender } from "./messageSender";
import { loadOutbox, type OutboxMessage } from "./outbox";

const run = { ...sampleRun(), input: "hello" };
const view: SessionView = { ...EMPTY, runs: [run] };

let sender: MessageSender;
/** The messages that the socket has sent since the last connect. */
let sent: { query?: string; request_id?: string }[];
beforeEach(() => {
  vi.useFakeTimers({ now: run.startedAt });
  localStorage.clear();
  open();
});
afterEach(() => {
  sender.close();
  vi.useRealTimers();
});

function open() {
  sent = [];
  const send = (message: object) => sent.push(message) > 0;
  sender = new MessageSender("s", send, () => {});
}
function reconnect() {
  sent = [];
  sender.sendAllAgain();
}
function ask(...texts: string[]) {
  for (const text of texts) sender.ask(text, "wait");
}
const queries = () => sent.map((one) => one.query);
const texts = () => sender.pending.map((one) => one.text);
const idOf = (index: number) => sent[index]?.request_id ?? "";
const first = (): OutboxMessage => {
  const [one] = sender.pending;
  if (one === undefined) throw new Error("no message is pending");
  return one;
};
/** Changes storage as another tab does. */
const elsewhere = (one: OutboxMessage, isStored: boolean) => {
  const key = `outbox.s.${one.requestId}`;
  writeStored(key, isStored ? one : null);
  window.dispatchEvent(new StorageEvent("storage", { key: `limelight.${key}` }));
};

describe("sending", () => {
  it("four messages are sent at a time, and one more that interrupts", () => {
    ask("1", "2", "3", "4", "5", "6");
    expect(queries()).toEqual(["1", "2", "3", "4"]);
    sender.accepted(idOf(0), "run_1", false);
    expect(queries()).toEqual(["1", "2", "3", "4", "5"]);
    sender.ask("now", "cancel");
    expect(queries().slice(5)).toEqual(["now"]);
    for (const index of [1, 2]) sender.refused(idOf(index), "no", "invalid");
    expect(queries().slice(6)).toEqual(["6"]);
  });

  it("a message keeps its id through a reload and a reconnect", () => {
    ask("hello");
    expect(sent).toMatchObject([{ type: "query", query: "hello", if_busy: "wait" }]);
    const id = idOf(0);
    sender.close();
    open();
    expect(sender.pending).toMatchObject([{ text: "hello", error: null }]);
    reconnect();
    expect(idOf(0)).toBe(id);
  });

  it("a refused message shows the reason and is sent again only on retry", () => {
    ask("hello");
    const id = idOf(0);
    sender.refused(id, "too many wait", "queue_full");
    expect(first().error).toBe("too many wait");
    reconnect();
    expect(sent).toEqual([]);
    sender.retry(first());
    expect(queries()).toEqual(["hello"]);
    expect(idOf(0)).not.toBe(id);
  });

  it("a message refused by a shutdown is sent again after the reconnect", () => {
    ask("hello");
    const id = idOf(0);
    sender.refused(id, "wait", "shutting_down");
    expect(first().error).toBeNull();
    reconnect();
    expect(idOf(0)).toBe(id);
  });

  it("a message over the limit in bytes is refused locally", () => {
    ask("é".repeat(499_000), "é".repeat(500_000));
    expect(sent).toHaveLength(1);
    expect(sender.pending.map((one) => one.error)).toEqual([null, "too long: at most 1 MB"]);
  });

  it("a withdrawn message is cancelled on the server only if it was sent", () => {
    ask("1", "2", "3", "4", "5");
    for (const one of [sender.pending[4], sender.pending[0]]) if (one) sender.withdraw(one);
    expect(texts()).toEqual(["2", "3", "4"]);
    expect(sent.slice(4)).toEqual([{ type: "cancel", request_id: idOf(0) }]);
  });
});

describe("messages that become runs", () => {
  it.each(["before", "after"])("a message is removed if the acceptance comes %s the run", (order) => {
    ask("hello");
    if (order === "before") sender.accepted(idOf(0), run.runId, false);
    sender.removeStarted(EMPTY, view, 0);
    if (order === "after") sender.accepted(idOf(0), run.runId, true);
    expect(texts()).toEqual([]);
    expect(loadOutbox("s")).toEqual([]);
  });

  it("an earlier run with the same text does not count as the run of a message", () => {
    ask("hello");
    sender.removeStarted(view, view, 0);
    expect(texts()).toEqual(["hello"]);
    sender.accepted(idOf(0), run.runId, true);
    vi.advanceTimersByTime(60_000);
    ask("hello");
    sender.removeStarted(EMPTY, view, 0);
    expect(texts()).toEqual(["hello"]);
  });
});

describe("another tab", () => {
  it("a message of another tab is shown here, and sent here only after a reconnect", () => {
    ask("mine");
    elsewhere({ ...first(), requestId: "r2", text: "theirs", at: Date.now() + 10 }, true);
    expect(texts()).toEqual(["mine", "theirs"]);
    expect(queries()).toEqual(["mine"]);
    reconnect();
    expect(queries()).toEqual(["mine", "theirs"]);
  });

  it("a message that another tab removes stays removed", () => {
    ask("hello");
    elsewhere(first(), false);
    expect(texts()).toEqual([]);
    sender.accepted(idOf(0), "run_9", false);
    expect(loadOutbox("s")).toEqual([]);
  });

  it("a message that another tab withdrew is removed when the server reports it", () => {
    const message = "Query was stopped while it waited";
    ask("hello");
    writeStored(`outbox.s.${first().requestId}`, null);
    sender.refused(idOf(0), message, "session_busy");
    expect(texts()).toEqual([]);
    ask("still wanted");
    sender.refused(idOf(1), message, "session_busy");
    expect(sender.pending).toMatchObject([{ text: "still wanted", error: message }]);
  });
});
