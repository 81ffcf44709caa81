// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket, newestSocket } from "../testing/fakeSocket";
import { ReconnectingSocket, type SocketStatus } from "./reconnectingSocket";

describe("a link", () => {
  let link: ReconnectingSocket;
  let told: SocketStatus[];
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    told = [];
    link = new ReconnectingSocket(() => "api", {
      open() {},
      message: () => link.greeted(),
      status: (status) => told.push(status),
    });
  });
  afterEach(() => {
    link.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("says that a silent server is lost, since it was last heard, before it tries again", () => {
    newestSocket().open();
    const heard = Date.now();
    vi.advanceTimersByTime(30_000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(told.at(-1)).toMatchObject({ kind: "lost", since: heard });
    newestSocket().open();
    expect(told.at(-1)).toEqual({ kind: "open" });
  });

  it("gives up an attempt that hangs, waits longer each time, and says that it is cut off", () => {
    const begun = Date.now();
    vi.advanceTimersByTime(7_900);
    expect(told).toEqual([{ kind: "connecting" }]);
    vi.advanceTimersByTime(100);
    expect(told.at(-1)).toEqual({ kind: "lost", since: begun, next: begun + 8_400 });
    expect(FakeSocket.all[0]?.readyState).toBe(3);
    vi.advanceTimersByTime(400 + 8_000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(told.at(-1)).toEqual({ kind: "lost", since: begun, next: begun + 16_400 + 800 });
  });

  it("leaves an open socket alone however long it took", () => {
    vi.advanceTimersByTime(7_000);
    newestSocket().open();
    vi.advanceTimersByTime(7_000);
    expect(told.at(-1)).toEqual({ kind: "open" });
  });

  it("tries anew at once if told to while an attempt hangs, but never beside an open socket", () => {
    link.hurry();
    expect(FakeSocket.all).toHaveLength(2);
    expect(FakeSocket.all[0]?.readyState).toBe(3);
    newestSocket().open();
    link.hurry();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("does not go back to a deleted session by itself", () => {
    newestSocket().open();
    newestSocket().cut(4404, "session deleted");
    window.dispatchEvent(new Event("online"));
    document.dispatchEvent(new Event("visibilitychange"));
    expect(FakeSocket.all).toHaveLength(1);
    link.restart();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it.each(["too_many_streams", "too_many_requests", "store_unavailable", "issuer_unavailable", "shutting_down"])(
    "comes back after a refusal that passes: %s",
    (code) => {
      newestSocket().cut(1008, code);
      expect(told.at(-1)).toMatchObject({ kind: "lost", reason: code });
      vi.advanceTimersByTime(400);
      expect(FakeSocket.all).toHaveLength(2);
    },
  );

  it("comes back not before the server wants it to, and later each time", () => {
    const begun = Date.now();
    expect(link.refused("store_unavailable", "the disk is full", 5)).toBe(true);
    newestSocket().cut(1013, "store_unavailable");
    const lost = { kind: "lost", since: begun, reason: "the disk is full" };
    expect(told.at(-1)).toEqual({ ...lost, next: begun + 5400 });
    window.dispatchEvent(new Event("online"));
    vi.advanceTimersByTime(5399);
    expect(FakeSocket.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.all).toHaveLength(2);
    link.refused("store_unavailable", "the disk is full", 5);
    newestSocket().cut(1013, "store_unavailable");
    expect(told.at(-1)).toEqual({ ...lost, next: Date.now() + 5800 });
    // The user's request is not delayed.
    link.hurry();
    newestSocket().open();
    expect(told.at(-1)).toEqual({ kind: "open" });
    newestSocket().cut();
    expect(told.at(-1)).toEqual({ kind: "lost", since: Date.now(), next: Date.now() + 400 });
  });

  it("does not come back after another refusal, until it is told to", () => {
    expect(link.refused("too_many_sessions", "you have 3 sessions", 0)).toBe(false);
    newestSocket().cut(1008, "too_many_sessions");
    expect(told.at(-1)).toMatchObject({ kind: "ended", why: "refused" });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    link.restart();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("sends nothing to a server that has not taken it in", () => {
    newestSocket().readyState = 1;
    expect(link.send({ type: "cancel" })).toBe(false);
    newestSocket().open();
    expect(link.send({ type: "cancel" })).toBe(true);
  });
});
