import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { TestChat } from "../testing/providers";
import { sampleRun, type TimedEvent } from "../testing/sampleRuns";
import { ItemBody } from "./ItemBody";

afterEach(cleanup);

const PLAN: TimedEvent = [
  1,
  {
    kind: "plan",
    items: [
      { content: "Look", status: "completed" },
      { content: "Read", status: "in_progress" },
      { content: "Tell", status: "pending" },
    ],
  },
];

/** The states of a list as a screen reader announces them. */
function states(...events: readonly TimedEvent[]): readonly (string | null)[] {
  const run = sampleRun(...events);
  const list = run.items.find((item) => item.kind === "todos");
  if (list === undefined) throw new Error("no list");
  render(
    <TestChat>
      <ItemBody run={run} item={list} />
    </TestChat>,
  );
  return screen.getAllByRole("img").map((icon) => icon.getAttribute("aria-label"));
}

const FAILED = { kind: "run_failed", code: "interrupted", message: "The server stopped." } as const;

it.each<[string, TimedEvent[]]>([
  ["running", []],
  ["stopped", [[2, { kind: "run_cancelled" }]]],
  ["stopped", [[2, FAILED]]],
  ["pending", [[2, { kind: "run_finished" }]]],
])("an entry in progress is %s after %j", (state, events) => {
  expect(states(PLAN, ...events)).toEqual(["done", state, "pending"]);
});

it.each([
  ["pending", {}],
  ["stopped", { error: "lost" }],
])("an entry in progress is %s when its sub-agent ends with %j", (state, outcome) => {
  const started: TimedEvent = [0.5, { kind: "agent_started", agent_id: "a", name: "reader" }];
  const plan: TimedEvent = [1, { ...PLAN[1], agent_id: "a" } as TimedEvent[1]];
  const finished: TimedEvent = [2, { kind: "agent_finished", agent_id: "a", ...outcome }];
  expect(states(started, plan, finished)).toEqual(["done", state, "pending"]);
});
