import { describe, expect, it } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { dialectTranscripts, sourceTranscripts, transcript } from "../testing/goldenTranscripts";
import { sampleRun, type TimedEvent } from "../testing/sampleRuns";
import { buildRunRows, groupSubAgents, outermostItem, RowBuilder, rowIndexOf, visibleItems } from "./chatRows";

function runOf(name: string, count?: number): RunView {
  const view = reduce(EMPTY, transcript(name).slice(0, count));
  const run = view.runs[0];
  if (run === undefined) throw new Error(`nothing in ${name}`);
  return run;
}

describe("rows", () => {
  const all = [...dialectTranscripts(), ...sourceTranscripts()];
  it.each(all)("rows of $name have unique keys, with the question first and the end last", ({ records }) => {
    const rows = new RowBuilder().build(reduce(EMPTY, records), [], () => true);
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
    expect(rows[0]?.kind).toBe("user");
    expect(rows[rows.length - 1]?.kind).toBe("end");
  });

  it("collapsed rows leave the answer", () => {
    const rows = buildRunRows(runOf("one_tool"), false);
    expect(rows.map((row) => row.kind)).toEqual(["user", "steps", "item", "end"]);
    expect(rows[2]).toMatchObject({ isAnswer: true, item: { kind: "text" } });
  });

  it("collapsed rows leave files", () => {
    const kinds = buildRunRows(runOf("code_output"), false).map((row) =>
      row.kind === "item" ? row.item.kind : row.kind,
    );
    expect(kinds).toEqual(["user", "steps", "artifact", "text", "end"]);
  });

  it("parallel sub-agents are one row", () => {
    const groups = buildRunRows(runOf("sub_agents"), true).filter((row) => row.kind === "subAgents");
    expect(groups).toMatchObject([{ items: [{}, {}] }]);
  });

  describe("sub-agents", () => {
    const started = (at: number, id: string): TimedEvent[] => [
      [at, { kind: "tool_started", call_id: id, name: "task", args: {} }],
      [at, { kind: "agent_started", agent_id: id, name: id, call_id: id }],
    ];
    const ended = (at: number, id: string): TimedEvent[] => [
      [at, { kind: "agent_finished", agent_id: id }],
      [at, { kind: "tool_finished", call_id: id, result: "" }],
    ];
    const tool = (at: number, id: string): TimedEvent[] => [
      [at, { kind: "tool_started", call_id: id, name: "ls", args: {} }],
      [at, { kind: "tool_finished", call_id: id, result: "" }],
    ];
    /** The calls of each row after each event. */
    function growing(...events: readonly TimedEvent[]): readonly string[][] {
      return events.map((_, place) => {
        const run = sampleRun(...events.slice(0, place + 1));
        return buildRunRows(run, true).flatMap((row) => {
          const items = row.kind === "subAgents" ? row.items : row.kind === "item" ? [row.item] : [];
          return items.length > 0
            ? [items.map((item) => (item.kind === "tool" ? item.callId : item.kind)).join(" ")]
            : [];
        });
      });
    }

    it("sub-agents with a call between them are joined", () => {
      const events = [...started(1, "A"), ...tool(1.1, "ls"), ...started(1.2, "B"), ...ended(5, "A"), ...ended(6, "B")];
      expect(growing(...events).at(-1)).toEqual(["A B", "ls"]);
    });

    it("a sub-agent that starts while an earlier one runs is joined", () => {
      const events = [...started(1, "A"), ...started(1, "B"), ...ended(2, "B"), ...started(3, "C"), ...ended(9, "A")];
      expect(growing(...events).at(-1)).toEqual(["A B C"]);
    });

    it("a sub-agent that starts after all others ended is a row of its own", () => {
      const events = [...started(1, "A"), ...started(1, "B"), ...ended(2, "B"), ...ended(3, "A"), ...tool(4, "ls")];
      expect(growing(...events, ...started(5, "C")).at(-1)).toEqual(["A B", "ls", "C"]);
    });

    it("rows do not change when a sub-agent ends", () => {
      const events = [...started(1, "A"), ...tool(2, "ls"), ...started(3, "B"), ...started(4, "C")];
      const end = growing(...events).at(-1);
      for (const order of ["ABC", "CBA", "BAC"]) {
        const ends = [...order].flatMap((id, place) => ended(5 + place, id));
        for (const later of growing(...events, ...ends).slice(events.length)) expect(later).toEqual(end);
      }
    });

    it("sub-agents of a sub-agent are joined too", () => {
      const inside = (events: readonly TimedEvent[]): TimedEvent[] =>
        events.map(
          ([at, event]) =>
            [
              at,
              { ...event, ...(event.kind.startsWith("agent") ? { parent_id: "X" } : { agent_id: "X" }) },
            ] as TimedEvent,
        );
      const run = sampleRun(...started(0, "X"), ...inside([...started(1, "A"), ...tool(2, "ls"), ...started(3, "B")]));
      const groups = groupSubAgents(run, visibleItems(run, "X"));
      expect(groups.map(({ subAgents }) => subAgents?.length ?? 0)).toEqual([2, 0]);
    });
  });

  it("an open approval is below the steps, also when they are collapsed", () => {
    const asking = runOf("approval", 3);
    expect(buildRunRows(asking, false).map((row) => row.kind)).toEqual(["user", "steps", "approval", "end"]);
    expect(buildRunRows(runOf("approval"), false).some((row) => row.kind === "approval")).toBe(false);
  });

  it("the last text stays visible while the agent works", () => {
    const speaking = runOf("text", 2);
    expect(buildRunRows(speaking, false).map((row) => row.kind)).toEqual(["user", "item", "end"]);
  });

  it("an answer that was not streamed is a row", () => {
    expect(buildRunRows(runOf("answer_never_streamed"), false).map((row) => row.kind)).toContain("answer");
  });

  it("rows of a growing run are reused unless they change", () => {
    let growing = EMPTY;
    let rows: ReturnType<typeof buildRunRows> = [];
    const said = (row: (typeof rows)[number]) => ({ ...row, run: null });
    for (const record of transcript("sub_agents")) {
      growing = reduce(growing, [record]);
      for (const run of growing.runs) {
        rows = buildRunRows(run, true, rows);
        expect(rows.map(said)).toEqual(buildRunRows(run, true).map(said));
      }
    }
    const view = reduce(EMPTY, transcript("one_tool").slice(0, -2));
    const grown = reduce(view, transcript("one_tool"));
    const open = () => true;
    const builder = new RowBuilder();
    const before = builder.build(view, [], open);
    const after = builder.build(grown, [], open);
    expect(after.find((row) => row.kind === "user")).toBe(before.find((row) => row.kind === "user"));
    const tools = [before, after].map((rows) => rows.find((row) => row.kind === "item" && row.item.kind === "tool"));
    expect(tools[1]).toBeDefined();
    expect(tools[1]).toBe(tools[0]);
    expect(after[after.length - 1]).not.toBe(before[before.length - 1]);
  });

  it("rows of an unchanged run are reused", () => {
    const view = reduce(EMPTY, transcript("sub_agents"));
    const open = () => true;
    const builder = new RowBuilder();
    expect(builder.build(view, [], open)[1]).toBe(builder.build({ ...view }, [], open)[1]);
  });

  it("the row of a nested item is found", () => {
    const run = runOf("sub_agents");
    const inner = run.items.find((item) => item.kind === "tool" && item.name === "readurl");
    if (inner === undefined) throw new Error("no such call");
    expect(outermostItem(run, inner)).toMatchObject({ callId: "c1" });
    const rows = buildRunRows(run, true);
    expect(rows[rowIndexOf(rows, run, inner)]?.kind).toBe("subAgents");
    expect(rowIndexOf(buildRunRows(run, false), run, inner)).toBe(-1);
  });
});
