import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakeSocket } from "../testing/fakeSocket";
import { useSession } from "./useSession";

let status: number;
beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  FakeSocket.all = [];
  status = 0;
  vi.stubGlobal("fetch", async () => {
    if (status === 0) throw new TypeError("network");
    return new Response("{}", { status });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

it.each([200, 404, 403])("no socket opens before the server has answered %s", async (answer) => {
  const { result } = renderHook(() => useSession("s"));
  await pass(10_000);
  expect(result.current).toMatchObject({ store: null, isWaiting: true, isMissing: false });
  expect(FakeSocket.all).toEqual([]);
  status = answer;
  await pass(8_000);
  expect(result.current).toMatchObject({ isWaiting: false, isMissing: answer === 404 });
  expect(FakeSocket.all).toHaveLength(answer === 404 ? 0 : 1);
});

it("unmounting stops the requests", async () => {
  const asked = vi.fn(async () => {
    throw new TypeError("network");
  });
  vi.stubGlobal("fetch", asked);
  const { unmount } = renderHook(() => useSession("s"));
  await pass(500);
  unmount();
  await pass(60_000);
  expect(asked).toHaveBeenCalledTimes(1);
});
