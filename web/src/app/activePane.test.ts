import { expect, it } from "vitest";
import { pythonCall, sampleRun, type TimedEvent } from "../testing/sampleRuns";
import { activePane } from "./activePane";

const code = (name: string): TimedEvent => [1, pythonCall("c", "print(1)", name)];
const printed: TimedEvent = [2, { kind: "tool_output_delta", call_id: "c", text: "1" }];
const finished: TimedEvent = [3, { kind: "tool_finished", call_id: "c", result: "" }];

it.each(["python", "run_python_code"])(
  "the active pane is code while %s runs, and the terminal while it prints",
  (name) => {
    expect(activePane(sampleRun(code(name)))).toBe("code");
    expect(activePane(sampleRun(code(name), printed))).toBe("terminal");
    expect(activePane(sampleRun(code(name), printed, finished))).toBeNull();
  },
);

it("the active pane is code from the first streamed characters of code", () => {
  const begun: TimedEvent = [1, { kind: "tool_started", call_id: "c", name: "python", language: "python" }];
  const streamed: TimedEvent = [2, { kind: "tool_args_delta", call_id: "c", text: '{"code": "pri' }];
  expect(activePane(sampleRun(begun))).toBeNull();
  expect(activePane(sampleRun(begun, streamed))).toBe("code");
});

it("no pane is active for tools without code or output, or for an ended run", () => {
  expect(
    activePane(sampleRun([1, { kind: "tool_started", call_id: "c", name: "ls", args: { path: "/" }, summary: "/" }])),
  ).toBeNull();
  expect(activePane(sampleRun(code("python"), [2, { kind: "run_cancelled" }]))).toBeNull();
});
