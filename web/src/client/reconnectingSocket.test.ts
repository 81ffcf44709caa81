// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket, newestSocket } from "../testing/fakeSocket";
import { ReconnectingSocket, type SocketStatus } from "./reconnectingSocket";

describe("a reconnecting socket", () => {
  let link: ReconnectingSocket;
  let events: SocketStatus[];
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    events = [];
    link = new ReconnectingSocket(() => "api", {
      open() {},
      message: () => link.accepted(),
      status: (status) => events.push(status),
    });
  });
  afterEach(() => {
    link.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("a silent server gets a ping and then counts as lost since the last message before the reconnect", () => {
    newestSocket().open();
    const heard = Date.now();
    vi.advanceTimersByTime(20_000);
    expect(newestSocket().sent).toEqual([{ type: "ping" }]);
    vi.advanceTimersByTime(10_000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(events.at(-1)).toMatchObject({ kind: "lost", since: heard });
    newestSocket().open();
    expect(events.at(-1)).toEqual({ kind: "open" });
  });

  it("an attempt that hangs is given up, and the delay grows", () => {
    const begun = Date.now();
    vi.advanceTimersByTime(7_900);
    expect(events).toEqual([{ kind: "connecting" }]);
    vi.advanceTimersByTime(100);
    expect(events.at(-1)).toEqual({ kind: "lost", since: begun, next: begun + 8_400 });
    expect(FakeSocket.all[0]?.readyState).toBe(3);
    vi.advanceTimersByTime(400 + 8_000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(events.at(-1)).toEqual({ kind: "lost", since: begun, next: begun + 16_400 + 800 });
  });

  it("an open socket is left alone however long the attempt took", () => {
    vi.advanceTimersByTime(7_000);
    newestSocket().open();
    vi.advanceTimersByTime(7_000);
    expect(events.at(-1)).toEqual({ kind: "open" });
  });

  it("reconnectNow replaces a hanging attempt and leaves an open socket alone", () => {
    link.reconnectNow();
    expect(FakeSocket.all).toHaveLength(2);
    expect(FakeSocket.all[0]?.readyState).toBe(3);
    newestSocket().open();
    link.reconnectNow();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("a deleted session is not reconnected by itself", () => {
    newestSocket().open();
    newestSocket().drop(4404, "session deleted");
    window.dispatchEvent(new Event("online"));
    document.dispatchEvent(new Event("visibilitychange"));
    expect(FakeSocket.all).toHaveLength(1);
    link.restart();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it.each(["too_many_streams", "too_many_requests", "store_unavailable", "issuer_unavailable", "shutting_down"])(
    "a temporary refusal is followed by a reconnect: %s",
    (code) => {
      newestSocket().drop(1008, code);
      expect(events.at(-1)).toMatchObject({ kind: "lost", reason: code });
      vi.advanceTimersByTime(400);
      expect(FakeSocket.all).toHaveLength(2);
    },
  );

  it("the reconnect waits for the server's retry time, and longer each time", () => {
    const begun = Date.now();
    expect(link.noteRefusal("store_unavailable", "the disk is full", 5)).toBe(true);
    newestSocket().drop(1013, "store_unavailable");
    const lost = { kind: "lost", since: begun, reason: "the disk is full" };
    expect(events.at(-1)).toEqual({ ...lost, next: begun + 5400 });
    window.dispatchEvent(new Event("online"));
    vi.advanceTimersByTime(5399);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(2);
    link.noteRefusal("store_unavailable", "the disk is full", 5);
    newestSocket().drop(1013, "store_unavailable");
    expect(events.at(-1)).toEqual({ ...lost, next: Date.now() + 5800 });
    // The user's request is not delayed.
    link.reconnectNow();
    newestSocket().open();
    expect(events.at(-1)).toEqual({ kind: "open" });
    newestSocket().drop();
    expect(events.at(-1)).toEqual({ kind: "lost", since: Date.now(), next: Date.now() + 400 });
  });

  it("a permanent refusal is followed by a reconnect only on restart", () => {
    expect(link.noteRefusal("too_many_sessions", "you have 3 sessions", 0)).toBe(false);
    newestSocket().drop(1008, "too_many_sessions");
    expect(events.at(-1)).toMatchObject({ kind: "ended", why: "refused" });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    link.restart();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("nothing is sent before the server accepts the connection", () => {
    newestSocket().readyState = 1;
    expect(link.send({ type: "cancel" })).toBe(false);
    newestSocket().open();
    expect(link.send({ type: "cancel" })).toBe(true);
  });
});
