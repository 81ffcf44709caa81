// @vitest-environment jsdom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket, newest } from "./fakeSocket";
import { Link, type LinkStatus } from "./link";

describe("a link", () => {
  let link: Link;
  let told: LinkStatus[];
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    vi.stubGlobal("WebSocket", FakeSocket);
    FakeSocket.all = [];
    told = [];
    link = new Link(() => "api", { open() {}, message() {}, status: (status) => told.push(status) });
  });
  afterEach(() => {
    link.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("says that a silent server is lost, since it was last heard, before it tries again", () => {
    newest().open();
    const heard = Date.now();
    vi.advanceTimersByTime(30_000);
    expect(FakeSocket.all).toHaveLength(2);
    expect(told.at(-1)).toMatchObject({ kind: "lost", since: heard });
    newest().open();
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
    newest().open();
    vi.advanceTimersByTime(7_000);
    expect(told.at(-1)).toEqual({ kind: "open" });
  });

  it("tries anew at once if told to while an attempt hangs, but never beside an open socket", () => {
    link.hurry();
    expect(FakeSocket.all).toHaveLength(2);
    expect(FakeSocket.all[0]?.readyState).toBe(3);
    newest().open();
    link.hurry();
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("does not go back to a deleted session by itself", () => {
    newest().open();
    newest().cut(4404, "session deleted");
    window.dispatchEvent(new Event("online"));
    document.dispatchEvent(new Event("visibilitychange"));
    expect(FakeSocket.all).toHaveLength(1);
    link.restart();
    expect(FakeSocket.all).toHaveLength(2);
  });
});
