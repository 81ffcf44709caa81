import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { sampleRun } from "../testing/sampleRuns";
import { StepsHeader } from "./ChatRow";
import { ToolRow } from "./ToolRow";

installJsdomPolyfills();
afterEach(cleanup);

const UNSEEN = sampleRun(
  [1, { kind: "tool_started", call_id: "c1", name: "send_mail", args: { to: "ann" }, summary: "ann" }],
  [5, { kind: "tool_finished", call_id: "c1", result: "No result seen", result_seen: false }],
  [6, { kind: "final_answer", content: "Sent." }],
  [7, { kind: "run_finished" }],
);

it("a call without a visible result has its own state and no duration", () => {
  const tool = UNSEEN.items.find((item) => item.kind === "tool");
  if (tool === undefined) throw new Error("no tool");
  const { container } = render(
    <TestChat>
      <ToolRow run={UNSEEN} tool={tool} />
    </TestChat>,
  );
  expect(screen.getByRole("img").getAttribute("aria-label")).toBe("no result seen");
  expect(container.querySelector(".time")?.textContent).toBe("No result seen");
  expect(screen.getByRole("button").getAttribute("aria-expanded")).toBe("false");
});

it("the steps header counts calls without a result", () => {
  render(<StepsHeader run={UNSEEN} isExpanded={false} onToggle={() => {}} />);
  expect(screen.getByText("Execution steps (1 tool, 1 without a result)")).toBeTruthy();
});

it.each(["stopped", "rejected"] as const)("a %s call says so and stays closed", (outcome) => {
  const run = sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "send_mail", args: {} }],
    [5, { kind: "tool_finished", call_id: "c1", result: "Error: no", error: "no", outcome, duration_ms: 4 }],
  );
  const tool = run.items.find((item) => item.kind === "tool");
  if (tool === undefined) throw new Error("no tool");
  const { container } = render(
    <TestChat>
      <ToolRow run={run} tool={tool} />
    </TestChat>,
  );
  expect(screen.getByRole("img").getAttribute("aria-label")).toBe(outcome);
  expect(container.querySelector(".time")?.textContent).toMatch(new RegExp(`^${outcome} · `));
  expect(screen.getByRole("button").getAttribute("aria-expanded")).toBe("false");
});
