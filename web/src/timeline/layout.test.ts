import { describe, expect, it } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { dialectTranscripts, sourceTranscripts } from "../testing/goldenTranscripts";
import { goldenSession, onlyRun, START, sampleRun, type TimedEvent } from "../testing/sampleRuns";
import { layout, type RowCache, type TimelineRow } from "./layout";

const lines = (run: RunView, now = 0) => layout(run, now).rows.map(line);
const line = ({ depth, label, begin, end, state }: TimelineRow) =>
  `${"  ".repeat(depth)}${label} ${begin}-${end} ${state}`;

const GOLDEN = [...dialectTranscripts(), ...sourceTranscripts()].map(({ name, records }) => ({ name, records }));

describe("golden transcripts", () => {
  it.each(GOLDEN)("$name has a row for each call, inside the run, with nothing running", ({ records }) => {
    for (const run of reduce(EMPTY, records).runs) {
      const { rows, span, isRunning } = layout(run, START + 1e9);
      expect(isRunning).toBe(false);
      expect(rows.filter((row) => row.kind === "tool")).toHaveLength(run.tools);
      expect(rows.filter((row) => row.kind === "agent")).toHaveLength(run.agents.size);
      expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
      for (const row of rows) {
        expect(row.begin).toBeGreaterThanOrEqual(0);
        expect(row.end).toBeGreaterThanOrEqual(row.begin);
        expect(row.end).toBeLessThanOrEqual(span);
        expect(["running", "waiting"]).not.toContain(row.state);
        expect(row.parts[0]?.begin).toBe(row.begin);
        expect(row.parts.at(-1)?.end).toBe(row.end);
      }
    }
  });

  it("places sub-agents below the calls that started them", () => {
    expect(lines(onlyRun(goldenSession("sub_agents")))).toEqual([
      "demo 0-66 done",
      "  task 3-54 done",
      "    researcher 9-51 done",
      "      Text 15-24 done",
      "      reader 27-48 done",
      "        readurl 30-33 done",
      "  task 6-42 failed",
      "    critic 12-39 failed",
      "      Text 18-36 done",
      "  Answer 57-60 done",
    ]);
  });

  it("shows the wait for an approval, also without a call", () => {
    const { rows } = layout(onlyRun(goldenSession("approval")), 0);
    expect(rows[1]?.parts).toEqual([
      { kind: "write", begin: 3, end: 6 },
      { kind: "wait", begin: 6, end: 9 },
      { kind: "work", begin: 9, end: 12 },
    ]);
    expect(rows[2]).toMatchObject({ kind: "approval", label: "Approval", about: "publish", state: "rejected" });
    expect(rows[2]?.parts).toEqual([{ kind: "wait", begin: 15, end: 18 }]);
  });
});

const tool = (id: string, name: string, agent_id = ""): TimedEvent[1] => ({
  kind: "tool_started",
  call_id: id,
  name,
  args: { path: `${id}.txt` },
  summary: `${id}.txt`,
  agent_id,
});
const done = (id: string, agent_id = ""): TimedEvent[1] => ({
  kind: "tool_finished",
  call_id: id,
  result: "ok",
  agent_id,
});

describe("sample runs", () => {
  it("has parallel sub-agents that overlap and end out of order", () => {
    const run = sampleRun(
      [1, tool("c1", "task")],
      [1, tool("c2", "task")],
      [1.1, { kind: "agent_started", agent_id: "a1", name: "slow", call_id: "c1" }],
      [1.2, { kind: "agent_started", agent_id: "a2", name: "quick", call_id: "c2" }],
      [2, tool("c3", "read", "a1")],
      [2, tool("c4", "grep", "a2")],
      [3, done("c4", "a2")],
      [3, { kind: "agent_finished", agent_id: "a2" }],
      [3, done("c2")],
      [8, done("c3", "a1")],
      [9, { kind: "agent_finished", agent_id: "a1" }],
      [9, done("c1")],
      [10, { kind: "run_finished" }],
    );
    expect(lines(run)).toEqual([
      "deep 0-10000 done",
      "  task 1000-9000 done",
      "    slow 1100-9000 done",
      "      read 2000-8000 done",
      "  task 1000-3000 done",
      "    quick 1200-3000 done",
      "      grep 2000-3000 done",
    ]);
  });

  it("nests the items of a step below it", () => {
    const run = sampleRun(
      [0, { kind: "step_started", number: 1 }],
      [0.5, { kind: "reasoning_delta", message_id: "m1", text: "Let me see.\nThen" }],
      [1, { kind: "reasoning_finished", message_id: "m1" }],
      [1, tool("c1", "read")],
      [2, done("c1")],
      [2, { kind: "step_finished", number: 1, input_tokens: 10, output_tokens: 4 }],
      [2, { kind: "text_delta", message_id: "m2", text: "Done." }],
      [3, { kind: "text_finished", message_id: "m2" }],
      [3, { kind: "text_delta", message_id: "m3", text: "Whole at once" }],
      [3, { kind: "text_finished", message_id: "m3" }],
      [3, { kind: "run_finished" }],
    );
    expect(lines(run)).toEqual([
      "deep 0-3000 done",
      "  Step 1 0-2000 done",
      "    Thinking 500-1000 done",
      "    read 1000-2000 done",
      "  Text 2000-3000 done",
    ]);
    const { rows } = layout(run, 0);
    expect(rows[1]?.tokens).toEqual({ input: 10, output: 4 });
    expect(rows[2]?.about).toBe("Let me see.");
    expect(rows[3]?.about).toBe("c1.txt");
  });

  it("draws open items up to now, and never before the newest record", () => {
    const run = sampleRun([1, tool("c1", "sleep")], [2, { kind: "status", text: "Sleeping" }]);
    const { rows, span, isRunning } = layout(run, START + 5000);
    expect([span, isRunning]).toEqual([5000, true]);
    expect(rows[0]).toMatchObject({ end: 5000, isOpen: true, state: "running", about: "Sleeping" });
    expect(rows[1]).toMatchObject({ begin: 1000, end: 5000, isOpen: true, state: "running" });
    expect(layout(run, START).span).toBe(2000);
  });

  it("keeps the rows of ended items while the run continues", () => {
    const run = sampleRun([1, tool("c1", "read")], [2, done("c1")], [3, tool("c2", "sleep")]);
    const cache: RowCache = new WeakMap();
    const [, before, openBefore] = layout(run, START + 4000, cache).rows;
    const [, after, openAfter] = layout(run, START + 5000, cache).rows;
    expect(after).toBe(before);
    expect(openAfter).not.toEqual(openBefore);
  });

  it("labels a text as the answer as soon as it is known to be the answer", () => {
    const text: TimedEvent[] = [
      [1, { kind: "text_delta", message_id: "m", text: "So." }],
      [2, { kind: "text_finished", message_id: "m" }],
    ];
    const events = sampleRun(...text, [3, { kind: "final_answer", content: "So.", message_id: "m" }]);
    const cache: RowCache = new WeakMap();
    expect(layout({ ...events, answer: null }, START, cache).rows[1]?.label).toBe("Text");
    expect(layout(events, START, cache).rows[1]?.label).toBe("Answer");
  });

  it("shows an open approval as waiting up to now", () => {
    const run = sampleRun(
      [1, tool("c1", "write")],
      [2, { kind: "approval_requested", approval_id: "p", name: "write", args: {}, call_id: "c1" }],
    );
    expect(layout(run, START + 9000).rows[1]).toMatchObject({
      state: "waiting",
      parts: [
        { kind: "write", begin: 1000, end: 2000 },
        { kind: "wait", begin: 2000, end: 9000 },
      ],
    });
  });

  it("separates streaming arguments from the work", () => {
    const run = sampleRun(
      [1, { kind: "tool_started", call_id: "c1", name: "python" }],
      [2, { kind: "tool_args_delta", call_id: "c1", text: "{}" }],
      [3, { kind: "tool_ready", call_id: "c1", args: {} }],
      [5, done("c1")],
    );
    expect(layout(run, 0).rows[1]?.parts).toEqual([
      { kind: "write", begin: 1000, end: 3000 },
      { kind: "work", begin: 3000, end: 5000 },
    ]);
  });

  it("ends everything at a stop", () => {
    const run = sampleRun(
      [1, tool("c1", "sleep")],
      [1, { kind: "text_delta", message_id: "m1", text: "I" }],
      [2, { kind: "approval_requested", approval_id: "p", name: "send", args: {} }],
      [4, { kind: "run_cancelled", reason: "stopped" }],
    );
    expect(lines(run, START + 99_000)).toEqual([
      "deep 0-4000 stopped",
      "  sleep 1000-4000 stopped",
      "  Text 1000-4000 done",
      "  Approval 2000-4000 rejected",
    ]);
    expect(layout(run, START + 99_000).rows.some((row) => row.isOpen)).toBe(false);
  });

  it("handles cycles of agents and a clock that was set back", () => {
    const run = sampleRun(
      [-1, tool("c1", "task")],
      [1, { kind: "agent_started", agent_id: "a1", name: "one", parent_id: "a1" }],
      [2, { kind: "run_finished" }],
    );
    expect(layout(run, 0).rows[1]).toMatchObject({ begin: 0 });
  });

  it("lays out 10,000 tools and 2,000 nested agents, reading each item few times", () => {
    const tools = Array.from({ length: 10_000 }, (_, at): TimedEvent[] => [
      [at, tool(`c${at}`, "read")],
      [at + 1, done(`c${at}`)],
    ]);
    const agents = Array.from(
      { length: 2000 },
      (_, at): TimedEvent => [
        10_001,
        { kind: "agent_started", agent_id: `a${at}`, name: "n", parent_id: at ? `a${at - 1}` : "" },
      ],
    );
    const run = sampleRun(...tools.flat(), ...agents);
    let reads = 0;
    const items = new Proxy(run.items, {
      get: (target, key, receiver) => {
        reads += 1;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    const { rows } = layout({ ...run, items }, START);
    expect(reads).toBeLessThan(5 * run.items.length);
    expect(rows).toHaveLength(12_001);
    expect(rows.at(-1)?.depth).toBe(2000);
  });
});
