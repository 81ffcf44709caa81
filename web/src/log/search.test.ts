import { describe, expect, it } from "vitest";
import { goldenSession, onlyRun, sampleRun } from "../testing/sampleRuns";
import {
  countTools,
  countTruncatedMessages,
  type Filter,
  findHits,
  highlightMatches,
  isActive,
  matches,
  NO_FILTER,
} from "./search";
import type { Item, RunView } from "./viewModel";

const found = (run: RunView, filter: Partial<Filter>, whole?: (item: Item) => string | undefined) =>
  run.items.filter((item) => matches(item, { ...NO_FILTER, ...filter }, run, whole)).map((item) => item.index);

const run = sampleRun(
  [0, { kind: "reasoning_delta", message_id: "m0", text: "Which sales?" }],
  [
    1,
    {
      kind: "tool_started",
      call_id: "c1",
      name: "read_file",
      args: { path: 'Q1 "sales".csv' },
      summary: 'Q1 "sales".csv',
    },
  ],
  [2, { kind: "tool_output_delta", call_id: "c1", text: "mean \u001b[31m41" }],
  [2, { kind: "tool_output_delta", call_id: "c1", text: ".2\u001b[0m", stream: "stderr" }],
  [3, { kind: "tool_finished", call_id: "c1", result: { rows: [{ name: "Straße" }] } }],
  [4, { kind: "tool_started", call_id: "c2", name: "fetch", args: "not json", summary: "not json" }],
  [5, { kind: "tool_finished", call_id: "c2", result: "Error: refused", error: "refused by (host)" }],
  [6, { kind: "text_delta", message_id: "m1", text: "Sales rose." }],
  [7, { kind: "step_started", number: 1 }],
  [8, { kind: "step_finished", number: 1, error: "could not be parsed" }],
);

describe("matches", () => {
  it("everything matches without a filter", () => {
    expect(isActive(NO_FILTER)).toBe(false);
    expect(isActive({ ...NO_FILTER, text: "  " })).toBe(false);
    expect(found(run, {})).toEqual([0, 1, 2, 3, 4]);
  });

  it.each([
    ["SALES", [0, 1, 3]],
    ["sales rose", [3]],
    ["rose q1", []],
    ['"sales".csv', [1]],
    ["41.2", [1]],
    ["STRASSE", []],
    ["straße rows", [1]],
    ["not json", [2]],
    ["(host)", [2]],
    ["read_f csv", [1]],
    ["parsed", [4]],
  ])("finds %s", (text, items) => {
    expect(found(run, { text })).toEqual(items);
  });

  it("errors and a tool restrict the matches", () => {
    expect(found(run, { errorsOnly: true })).toEqual([2, 4]);
    expect(found(run, { tool: "fetch" })).toEqual([2]);
    expect(found(run, { tool: "fetch", text: "sales" })).toEqual([]);
    expect(found(run, { tool: "read_file", text: "sales" })).toEqual([1]);
    expect(found(onlyRun(goldenSession("cancelled")), { errorsOnly: true })).toEqual([]);
    expect(found(onlyRun(goldenSession("tool_error")), { errorsOnly: true })).not.toEqual([]);
  });

  it("fetched full results are searched", () => {
    const cut = onlyRun(goldenSession("truncated_result"));
    expect(found(cut, { text: "needle" })).toEqual([]);
    expect(found(cut, { text: "needle" }, () => "hay Needle hay")).not.toEqual([]);
  });
});

describe("findHits", () => {
  const events = sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "task", args: {} }],
    [2, { kind: "agent_started", agent_id: "a1", name: "digger", call_id: "c1" }],
    [3, { kind: "agent_finished", agent_id: "a1", error: "hit rock" }],
    [4, { kind: "tool_finished", call_id: "c1", result: "partly" }],
    [5, { kind: "text_delta", message_id: "m1", text: "There is gold." }],
    [6, { kind: "text_finished", message_id: "m1" }],
    [
      6,
      {
        kind: "final_answer",
        message_id: "m1",
        content: "There is gold.",
        title: "Report",
        sources: ["https://mine.example/"],
      },
    ],
  );
  const failed = sampleRun([1, { kind: "run_failed", message: "no shovel", code: "agent_error", error_id: "err_7" }]);
  const kinds = (of: RunView, filter: Partial<Filter>) =>
    findHits(of, { ...NO_FILTER, ...filter }).map((hit) => (hit.kind === "item" ? hit.item.kind : hit.kind));

  it.each([
    [events, { text: "go" }, ["question", "answer"]],
    [events, { text: "gold" }, ["answer"]],
    [events, { text: "report gold" }, ["answer"]],
    [events, { text: "mine.example" }, ["answer"]],
    [events, { text: "rock" }, ["tool"]],
    [events, { errorsOnly: true }, ["tool"]],
    [events, { tool: "task" }, ["tool"]],
    [failed, { text: "shovel" }, ["failure"]],
    [failed, { text: "err_7" }, ["failure"]],
    [failed, { errorsOnly: true }, ["failure"]],
    [failed, { errorsOnly: true, tool: "task" }, []],
  ])("questions, answers and failures are found (%#)", (of, filter, found) => {
    expect(kinds(of, filter)).toEqual(found);
  });

  it("truncated messages are counted", () => {
    const cut = { size: 9, url: "" };
    expect(countTruncatedMessages([events, { ...events, inputTruncation: cut }])).toBe(1);
  });
});

it("calls of each tool are counted", () => {
  expect(countTools([run, onlyRun(goldenSession("sub_agents"))])).toEqual([
    { name: "task", count: 2 },
    { name: "fetch", count: 1 },
    { name: "read_file", count: 1 },
    { name: "readurl", count: 1 },
  ]);
});

describe("highlightMatches", () => {
  it.each([
    ["Sales of sales", ["sales"], "[Sales] of [sales]"],
    ["foobar foo", ["foo", "foobar"], "[foobar] [foo]"],
    ["a.b axb", ["a.b"], "[a.b] axb"],
    ["İstanbul x", ["x"], "İstanbul [x]"],
    ["nothing", [], "nothing"],
    ["", ["a"], ""],
  ])("%s", (text, words, shown) => {
    const stretches = highlightMatches(text, words);
    expect(stretches.map((part) => (part.hit ? `[${part.text}]` : part.text)).join("")).toBe(shown);
    expect(stretches.map((part) => part.text).join("")).toBe(text);
  });
});
