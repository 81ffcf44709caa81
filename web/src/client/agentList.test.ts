// @vitest-environment jsdom

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { findAgent, loadAgents } from "./agentList";
import type { AgentInfo } from "./api";

const deep: AgentInfo = { name: "deep", title: "Deep", description: "", framework: "langgraph", default: false };
const demo: AgentInfo = { ...deep, name: "demo", title: "Demo", default: true };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the list of agents is requested until the server answers", async () => {
  const fetched = vi
    .fn<() => Promise<Response>>()
    .mockRejectedValueOnce(new TypeError("network"))
    .mockResolvedValueOnce(new Response("", { status: 502 }))
    .mockResolvedValue(Response.json({ agents: [deep], version: "2.1" }));
  vi.stubGlobal("fetch", fetched);
  const errors: string[] = [];
  const loading = loadAgents(new AbortController().signal, (error) => errors.push(error));
  await vi.runAllTimersAsync();
  expect(await loading).toEqual({ agents: [deep], version: "2.1" });
  expect(errors).toEqual(["The server cannot be reached.", "The server answered 502."]);
});

test("an aborted request is not repeated", async () => {
  const fetched = vi.fn<() => Promise<Response>>().mockRejectedValue(new TypeError("network"));
  vi.stubGlobal("fetch", fetched);
  const abort = new AbortController();
  const loading = expect(loadAgents(abort.signal, () => {})).rejects.toThrow();
  await vi.advanceTimersByTimeAsync(600);
  const count = fetched.mock.calls.length;
  abort.abort();
  await loading;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetched.mock.calls.length).toBe(count);
});

test("the chosen agent is found, otherwise the default", () => {
  expect(findAgent([deep, demo], "deep")).toBe(deep);
  expect(findAgent([deep, demo], "gone")).toBe(demo);
  expect(findAgent([], "deep")).toBe(undefined);
});
