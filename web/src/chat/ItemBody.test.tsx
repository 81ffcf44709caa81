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

it("an entry in progress is running while the agent works", () => {
  expect(states(PLAN)).toEqual(["done", "running", "pending"]);
});

it("an entry in progress is stopped when the run is stopped, fails or is interrupted", () => {
  expect(states(PLAN, [2, { kind: "run_cancelled" }])).toEqual(["done", "stopped", "pending"]);
  cleanup();
  const failed = { kind: "run_failed", code: "interrupted", message: "The server stopped." } as const;
  expect(states(PLAN, [2, failed])).toEqual(["done", "stopped", "pending"]);
});

it("an entry in progress is pending when the run has finished", () => {
  expect(states(PLAN, [2, { kind: "run_finished" }])).toEqual(["done", "pending", "pending"]);
});

it("a list ends with its sub-agent", () => {
  const begun: TimedEvent = [0.5, { kind: "agent_started", agent_id: "a", name: "reader" }];
  const plan: TimedEvent = [1, { ...PLAN[1], agent_id: "a" } as TimedEvent[1]];
  expect(states(begun, plan, [2, { kind: "agent_finished", agent_id: "a" }])).toEqual(["done", "pending", "pending"]);
  cleanup();
  const failed: TimedEvent = [2, { kind: "agent_finished", agent_id: "a", error: "lost" }];
  expect(states(begun, plan, failed)).toEqual(["done", "stopped", "pending"]);
});
