import { describe, expect, it, vi } from "vitest";
import type { RunView, ToolItem } from "../log/viewModel";
import { sampleRun } from "../testing/sampleRuns";
import type { ToolCall } from "./api";
import { MAX_CONCURRENT, SearchTexts } from "./searchTexts";

function runOf(count: number, size = 9000): RunView {
  return sampleRun(
    ...Array.from({ length: count }, (_, at) => [
      [at, { kind: "tool_started", call_id: `c${at}`, name: "read", args: {} }] as const,
      [at, { kind: "tool_finished", call_id: `c${at}`, result: "be…", truncated: true, size }] as const,
    ]).flat(),
  );
}

const toolsOf = (run: RunView) => run.items.filter((item): item is ToolItem => item.kind === "tool");

/** A server whose answers the test triggers. */
function slowServer() {
  const asked: { answer: (text: string) => void; refuse: () => void }[] = [];
  const fetchCall = vi.fn(
    (_runId: string, callId: string) =>
      new Promise<ToolCall>((resolve, reject) => {
        const call = { call_id: callId, name: "read", args: {}, output: "", error: null, media_type: "", size: 0 };
        const answer = (result: string) => resolve({ ...call, result });
        asked.push({ answer, refuse: () => reject(new Error("no")) });
      }),
  );
  return { asked, fetchCall };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("full results", () => {
  it("requests are limited, and subscribers are notified of each result", async () => {
    const { asked, fetchCall } = slowServer();
    const run = runOf(6);
    const results = new SearchTexts(fetchCall);
    const changed = vi.fn();
    results.subscribe(changed);
    results.request([run]);
    results.request([run]);
    expect(asked).toHaveLength(MAX_CONCURRENT);
    expect(results.getSnapshot().pending).toBe(6);
    const before = results.getSnapshot();
    changed.mockClear();
    asked[0]?.answer("the whole needle");
    await settled();
    expect(changed).toHaveBeenCalled();
    expect(results.getSnapshot()).not.toBe(before);
    expect(results.getSnapshot()).toBe(results.getSnapshot());
    expect(asked).toHaveLength(MAX_CONCURRENT + 1);
    const [first, second] = toolsOf(run);
    expect(first && results.getSnapshot().textOf(first)).toContain("needle");
    expect(second && results.getSnapshot().textOf(second)).toBeUndefined();
  });

  it("complete, running and too large calls are not requested", () => {
    const { asked, fetchCall } = slowServer();
    const results = new SearchTexts(fetchCall);
    results.request([
      sampleRun([0, { kind: "tool_started", call_id: "c", name: "read", args: {}, truncated: true, size: 9 }]),
    ]);
    results.request([runOf(1, 6 * 1024 * 1024)]);
    expect(asked).toHaveLength(0);
    expect(results.getSnapshot()).toMatchObject({ pending: 0, tooLarge: 1 });
  });

  it("failures are counted and requested again only on retry", async () => {
    const { asked, fetchCall } = slowServer();
    const results = new SearchTexts(fetchCall);
    const run = runOf(1);
    results.request([run]);
    asked[0]?.refuse();
    await settled();
    expect(results.getSnapshot()).toMatchObject({ pending: 0, failed: 1 });
    results.request([run]);
    expect(asked).toHaveLength(1);
    results.retry([run]);
    expect(asked).toHaveLength(2);
    expect(results.getSnapshot()).toMatchObject({ pending: 1, failed: 0 });
  });

  it("the least recently used texts are dropped when the limit is reached", async () => {
    const { asked, fetchCall } = slowServer();
    const results = new SearchTexts(fetchCall, 100);
    const run = runOf(3);
    const [one, two, three] = toolsOf(run);
    if (!one || !two || !three) throw new Error("three calls");
    results.request([run]);
    asked[0]?.answer("1".repeat(40));
    await settled();
    asked[1]?.answer("2".repeat(40));
    await settled();
    results.getSnapshot().textOf(one);
    asked[2]?.answer("3".repeat(40));
    await settled();
    const of = (item: ToolItem) => results.getSnapshot().textOf(item);
    expect([of(one), of(two), of(three)].map((text) => text !== undefined)).toEqual([true, false, true]);
  });

  it("queued requests can be cancelled and are sent when they are requested again", async () => {
    const { asked, fetchCall } = slowServer();
    const results = new SearchTexts(fetchCall);
    const run = runOf(6);
    results.request([run]);
    results.cancelQueued();
    expect(results.getSnapshot().pending).toBe(MAX_CONCURRENT);
    for (const call of asked) call.answer("all");
    await settled();
    expect(asked).toHaveLength(MAX_CONCURRENT);
    results.request([run]);
    expect(asked).toHaveLength(6);
  });
});
