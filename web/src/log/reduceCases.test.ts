import { describe, expect, it } from "vitest";
import { recordsOf, transcript } from "../testing/goldenTranscripts";
import { pythonCall } from "../testing/sampleRuns";
import type { AnyEvent } from "../wire/events";
import { codeOf } from "./codeArguments";
import { addGap, reduce } from "./reduce";
import { MAX_OUTPUT } from "./toolCalls";
import { EMPTY, type RunView, type ToolItem, tokensOf, tokensOfRun } from "./viewModel";

const START: AnyEvent = { kind: "run_started", agent: "deep", input: "go" };
const CODE: AnyEvent = pythonCall("c", "print(1)");

function folded(...events: AnyEvent[]): RunView {
  return only(reduce(EMPTY, recordsOf([START, ...events])).runs);
}

function golden(name: string, records?: number): RunView {
  return only(reduce(EMPTY, transcript(name).slice(0, records)).runs);
}

function only<T>(list: readonly T[]): T {
  const [one] = list;
  if (one === undefined || list.length > 1) throw new Error(`${list.length} instead of one`);
  return one;
}

function call(run: RunView, callId: string): ToolItem {
  const found = run.items.find((item) => item.kind === "tool" && item.callId === callId);
  if (found?.kind !== "tool") throw new Error(`no call ${callId}`);
  return found;
}

function kinds(run: RunView, agentId: string): string[] {
  return (run.agents.get(agentId)?.items ?? []).map((index) => run.items[index]?.kind ?? "nothing");
}

describe("sub-agents", () => {
  const run = golden("sub_agents");

  it("are in the call that started them, or an item of their own", () => {
    expect(call(run, "c1").agentIds).toEqual(["a1"]);
    expect(call(run, "c2").agentIds).toEqual(["a2"]);
    expect(run.items.filter((item) => item.kind === "agent")).toMatchObject([{ agentId: "a1", childId: "a3" }]);
  });

  it("have their own items in order", () => {
    expect(kinds(run, "")).toEqual(["tool", "tool", "text"]);
    expect(kinds(run, "a1")).toEqual(["text", "agent"]);
    expect(kinds(run, "a2")).toEqual(["text"]);
    expect(kinds(run, "a3")).toEqual(["tool", "status"]);
    expect(run.items.flatMap((item) => (item.kind === "text" ? [item.text] : []))).toEqual([
      "Searching.",
      "Hm.",
      "They are done.",
    ]);
  });

  it("end in any order", () => {
    const half = golden("sub_agents", 14);
    expect([...half.agents.values()].map((agent) => agent.state)).toEqual(["running", "running", "failed", "running"]);
    expect(run.agents.get("a2")).toMatchObject({ state: "failed", error: "nothing to criticise" });
    expect(run.agents.get("a3")).toMatchObject({ state: "done", parentId: "a1", status: "Reading", tools: 1 });
    expect(run.tools).toBe(3);
    expect(run.agents.get("")?.tools).toBe(2);
  });
});

describe("branches", () => {
  const run = golden("branches");

  it("are sub-agents with their titles and their own items", () => {
    expect([...run.agents.values()].map(({ label, isBranch }) => [label, isBranch])).toEqual([
      ["demo", false],
      ["write · bees", true],
      ["write · wasps", true],
    ]);
    expect(kinds(run, "")).toEqual(["step", "agent", "agent", "step", "text"]);
    expect(kinds(run, "write-2")).toEqual(["step", "text", "tool", "status"]);
  });
});

describe("labels of sub-agents", () => {
  const started = (agentId: string): AnyEvent => ({ kind: "agent_started", agent_id: agentId, name: "helper" });

  it("have a number while another one of the name runs", () => {
    const ended: AnyEvent[] = ["a1", "a2"].map((agentId) => ({ kind: "agent_finished", agent_id: agentId }));
    const run = folded(started("a1"), started("a2"), ...ended, started("a3"));
    expect([...run.agents.values()].map(({ label }) => label)).toEqual(["deep", "helper", "helper 2", "helper"]);
  });
});

describe("streamed arguments", () => {
  it("are text until they are complete", () => {
    expect(call(golden("streamed_args", 4), "c1")).toMatchObject({
      args: null,
      argsText: '{"path": "x.txt", "content": "é"}',
      state: "running",
    });
    expect(golden("streamed_args", 4).terminal).toEqual([]);
    const ready = call(golden("streamed_args", 5), "c1");
    expect(ready).toMatchObject({ args: { path: "x.txt", content: "é" }, argsText: "" });
    expect(ready.ranAt).toBeGreaterThan(ready.at);
  });

  it("contain code while they stream", () => {
    const run = folded(pythonCall("c", null), {
      kind: "tool_args_delta",
      call_id: "c",
      text: '{"code": "a = \\"é\\"\\nprint(a)\\u00',
    });
    expect(codeOf(call(run, "c"))).toEqual({ text: 'a = "é"\nprint(a)', language: "python", isComplete: false });
    expect(run.codes).toEqual([]);
  });
});

describe("approvals", () => {
  const ask: AnyEvent = { kind: "approval_requested", approval_id: "p", name: "python", args: {}, call_id: "c" };
  const decided = (decision: "approve" | "edit" | "reject", more: object = {}): AnyEvent => ({
    kind: "approval_resolved",
    approval_id: "p",
    decision,
    by: "ada",
    ...more,
  });

  it("make the run wait", () => {
    const run = folded(CODE, ask);
    expect(run.state).toBe("waiting");
    expect(call(run, "c")).toMatchObject({ state: "waiting", approval: 1 });
    expect(folded(CODE, ask, decided("approve")).state).toBe("running");
  });

  it("continue the call when they are approved", () => {
    const tool = call(folded(CODE, ask, decided("approve")), "c");
    expect(tool.state).toBe("running");
    expect(tool.ranAt - tool.at).toBe(6);
  });

  it("replace the arguments when they are edited", () => {
    const edited = decided("edit", {
      args: { code: "print(2)" },
      summary: "print(2)",
      language: "python",
      code_key: "code",
      truncated: true,
      size: 9,
      result_url: "/whole",
    });
    const run = folded(CODE, ask, edited);
    expect(codeOf(call(run, "c"))?.text).toBe("print(2)");
    expect(call(run, "c").summary).toBe("print(2)");
    expect(call(run, "c").argsTruncation).toEqual({ size: 9, url: "/whole" });
    expect(run.items[1]).toMatchObject({ decision: "edit", by: "ada", editedArgs: { code: "print(2)" } });
  });

  it("make a rejected call rejected, not failed", () => {
    const end: AnyEvent = { kind: "tool_finished", call_id: "c", result: "Error: no", error: "no" };
    expect(call(folded(CODE, ask, decided("reject")), "c").state).toBe("rejected");
    expect(call(folded(CODE, ask, decided("reject"), { ...end, outcome: "rejected" }), "c").state).toBe("rejected");
    expect(call(folded(CODE, ask, decided("reject"), end), "c").state).toBe("failed");
    expect(call(golden("rejected"), "c1").state).toBe("rejected");
  });

  it("keep the run waiting until the last one is resolved", () => {
    const other: AnyEvent = { kind: "approval_requested", approval_id: "q", name: "publish", args: {} };
    expect(folded(CODE, ask, other, decided("approve")).state).toBe("waiting");
  });

  it("that a stop resolved leave their call stopped, not rejected", () => {
    const run = folded(
      CODE,
      ask,
      decided("reject", { reason: "stopped", by: "system" }),
      { kind: "tool_finished", call_id: "c", result: "Error: stopped", error: "stopped", outcome: "stopped" },
      { kind: "run_cancelled", reason: "stopped by the user" },
    );
    expect(call(run, "c").state).toBe("stopped");
  });
});

describe("the end of a run", () => {
  it("stops the calls of a cancelled run", () => {
    const run = golden("cancelled");
    expect(run).toMatchObject({ state: "cancelled", reason: "stopped by the user" });
    expect(call(run, "c1")).toMatchObject({ state: "stopped", durationMs: 900 });
    expect(run.agents.get("")?.state).toBe("stopped");
  });

  it("stops what a failure interrupted, and leaves what failed before", () => {
    const run = golden("interrupted");
    expect(call(run, "c2").state).toBe("failed");
    expect(call(run, "c1").state).toBe("stopped");
    expect(run.agents.get("a1")?.state).toBe("stopped");
    expect(run.items[0]).toMatchObject({ kind: "step", state: "stopped" });
    expect(run.agents.get("")?.state).toBe("failed");
  });

  it("does not read states from error texts", () => {
    const run = folded(
      { kind: "step_started", number: 1 },
      CODE,
      { kind: "agent_started", agent_id: "a", name: "helper" },
      { kind: "agent_finished", agent_id: "a", error: "stopped" },
      { kind: "tool_finished", call_id: "c", error: "stopped" },
      { kind: "step_finished", number: 1, error: "stopped" },
      { kind: "run_cancelled" },
    );
    expect(call(run, "c").state).toBe("failed");
    expect(run.agents.get("a")?.state).toBe("failed");
    expect(run.items[0]).toMatchObject({ kind: "step", state: "failed" });
  });

  it("leaves a call without a visible result unseen", () => {
    const end: AnyEvent = { kind: "tool_finished", call_id: "c", result: "No result seen", result_seen: false };
    const run = folded(CODE, end, { kind: "run_finished" });
    expect(call(run, "c")).toMatchObject({ state: "unseen", error: null, durationMs: null });
  });

  it("closes items that lost their end to a gap", () => {
    const begin: AnyEvent[] = [
      START,
      CODE,
      { kind: "text_delta", message_id: "m", text: "I" },
      { kind: "step_started", number: 1 },
      { kind: "agent_started", agent_id: "a", name: "helper" },
      { kind: "approval_requested", approval_id: "p", name: "publish", args: {} },
    ];
    const before = addGap(reduce(EMPTY, recordsOf(begin)), { from: 7, to: 20 });
    const run = only(reduce(before, recordsOf([{ kind: "run_finished" }], "run_0", 20)).runs);
    expect(run.open.size).toBe(0);
    expect(run.state).toBe("finished");
    expect(call(run, "c").state).toBe("stopped");
    expect(run.agents.get("a")?.state).toBe("stopped");
    expect(run.items.filter((item) => "endedAt" in item && item.endedAt === null)).toEqual([]);
    expect(run.items.filter((item) => item.kind === "approval")).toMatchObject([{ decision: "reject", by: "system" }]);
  });
});

it("a truncated result has the URL of the full one", () => {
  const tool = call(golden("truncated_result"), "c1");
  expect(tool.resultTruncation?.size).toBeGreaterThan(String(tool.result).length);
  expect(tool.resultTruncation?.url).toContain("c1");
});

describe("output", () => {
  const out = (text: string, stream: "stdout" | "stderr" = "stdout"): AnyEvent => ({
    kind: "tool_output_delta",
    call_id: "c",
    text,
    stream,
  });

  it("is stored in pieces of one stream", () => {
    const run = folded(CODE, out("a"), out("b"), out("c", "stderr"), out("d"));
    expect(call(run, "c").output.map((piece) => piece.text)).toEqual(["ab", "c", "d"]);
  });

  it("drops its beginning above the limit", () => {
    const events = Array.from({ length: 40 }, (_, index) =>
      out(String.fromCharCode(65 + index).repeat(60_000), index % 3 ? "stdout" : "stderr"),
    );
    const tool = call(folded(CODE, ...events), "c");
    const kept = tool.output.map((piece) => piece.text).join("");
    const whole = events.map((event) => ("text" in event ? event.text : "")).join("");
    expect(whole.endsWith(kept)).toBe(true);
    expect(kept.length + tool.outputDropped).toBe(whole.length);
    expect(kept.length).toBeGreaterThanOrEqual(MAX_OUTPUT);
    expect(kept.length).toBeLessThanOrEqual(2 * MAX_OUTPUT);
  });
});

it("each call with code is a version", () => {
  const run = folded(
    CODE,
    { kind: "tool_finished", call_id: "c", result: "1" },
    { kind: "tool_started", call_id: "d", name: "ls", args: { path: "/" }, summary: "/" },
    { kind: "tool_finished", call_id: "d", result: "" },
    { ...pythonCall("e", null), args: "print(2)", summary: "print(2)" },
  );
  expect(run.codes).toEqual([0, 2]);
  expect(codeOf(call(run, "e"))).toEqual({ text: "print(2)", language: "python", isComplete: true });
});

describe("a streamed plan", () => {
  const pieces: AnyEvent[] = [
    { kind: "plan_delta", text: "1. Look. " },
    { kind: "plan_delta", text: "2. Answer." },
  ];
  const plans = (...events: AnyEvent[]) => only(reduce(EMPTY, recordsOf([START, ...events])).runs).items;

  it("grows in place and ends with the plan event", () => {
    expect(plans(...pieces)).toMatchObject([{ kind: "plan", text: "1. Look. 2. Answer.", isGrowing: true }]);
    const whole = plans(...pieces, { kind: "plan", text: "1. Look. 2. Answer." });
    expect(whole).toMatchObject([{ kind: "plan", text: "1. Look. 2. Answer.", isGrowing: false }]);
  });

  it("stays if the plan event is truncated, and is replaced by another plan", () => {
    expect(plans(...pieces, { kind: "plan", text: "1. Look.", truncated: true })).toMatchObject([
      { text: "1. Look. 2. Answer.", isGrowing: false },
    ]);
    expect(plans(...pieces, { kind: "plan", text: "Think." })).toMatchObject([{ text: "Think.", isGrowing: false }]);
  });

  it("ends with its step or run, and the next plan is a new item", () => {
    const step: AnyEvent[] = [
      { kind: "step_started", number: 1, step_kind: "planning" },
      ...pieces,
      { kind: "step_finished", number: 1, step_kind: "planning", error: "hung up" },
    ];
    const again: AnyEvent = { kind: "plan_delta", text: "Other.", update: true };
    expect(plans(...step, again).filter((item) => item.kind === "plan")).toMatchObject([
      { text: "1. Look. 2. Answer.", isGrowing: false },
      { text: "Other.", update: true, isGrowing: true },
    ]);
    expect(plans(...pieces, { kind: "run_cancelled" })).toMatchObject([{ isGrowing: false }]);
  });
});

it("to-dos are updated in place", () => {
  const run = golden("plan");
  expect(run.items.map((item) => item.kind)).toEqual(["plan", "todos", "text"]);
  expect(run.items[1]).toMatchObject({ todos: [{ status: "completed" }, { status: "completed" }] });
  expect(golden("plan", 5).items[1]?.key).toBe(run.items[1]?.key);
});

describe("tokens", () => {
  const steps: AnyEvent[] = [
    { kind: "step_started", number: 1 },
    { kind: "step_finished", number: 1, input_tokens: 10, output_tokens: 2 },
  ];
  const usage: AnyEvent = { kind: "usage", model: "m", input_tokens: 9, output_tokens: 1 };

  it("are those of the requests if they are reported", () => {
    const run = folded(usage, ...steps);
    expect(run.agents.get("")).toMatchObject({ usage: { input: 9, output: 1 }, stepUsage: { input: 10, output: 2 } });
    expect(tokensOfRun(run)).toEqual({ input: 9, output: 1 });
  });

  it("are those of the steps otherwise, for each agent", () => {
    const run = folded(...steps, { kind: "agent_started", agent_id: "a", name: "helper" }, {
      ...usage,
      agent_id: "a",
    } as AnyEvent);
    expect([...run.agents.values()].map(tokensOf)).toEqual([
      { input: 10, output: 2 },
      { input: 9, output: 1 },
    ]);
    expect(tokensOfRun(run)).toEqual({ input: 19, output: 3 });
  });
});

describe("a gap", () => {
  const records = transcript("sub_agents");

  it.each(records.map((record) => record.seq))("before record %i leaves the rest readable", (seq) => {
    const gapped = addGap(EMPTY, { from: 1, to: seq - 1 });
    const view = reduce(gapped, records.slice(seq - 1));
    const run = only(view.runs);
    expect(view.seq).toBe(records.length);
    expect(run.state).toBe("finished");
    expect(run.open.size).toBe(0);
    const listed = [...run.agents.values()].flatMap((agent) => agent.items);
    expect(listed.length).toBe(run.items.length);
  });

  it("is noted once", () => {
    const view = addGap(EMPTY, { from: 1, to: 5 });
    expect(view).toMatchObject({ seq: 5, gaps: [{ from: 1, to: 5 }] });
    expect(addGap(view, { from: 1, to: 5 })).toBe(view);
    expect(reduce(view, records.slice(0, 5))).toBe(view);
  });
});

it("runs are kept apart", () => {
  const first = recordsOf([START, CODE]);
  const second = recordsOf([{ ...START, turn: 2 } as AnyEvent, CODE], "run_1", 2);
  const view = reduce(EMPTY, [...first, ...second]);
  const after = reduce(view, recordsOf([{ kind: "tool_finished", call_id: "c", result: "1" }], "run_1", 4));
  expect(after.runs.map((run) => run.turn)).toEqual([1, 2]);
  expect(after.runs[0]).toBe(view.runs[0]);
  expect(after.runs.map((run) => call(run, "c").state)).toEqual(["running", "done"]);
});

it("an unknown event is skipped", () => {
  const strange = { kind: "hologram", text: "?" } as unknown as AnyEvent;
  expect(folded(strange, CODE).items.map((item) => item.kind)).toEqual(["tool"]);
});
