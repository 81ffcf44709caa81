import { expect, it } from "vitest";
import { made, type Told } from "../testing/sampleRuns";
import { paneOf } from "./activePane";

const code = (name: string): Told => [1, { kind: "tool_started", call_id: "c", name, args: { code: "print(1)" } }];
const printed: Told = [2, { kind: "tool_output_delta", call_id: "c", text: "1" }];
const finished: Told = [3, { kind: "tool_finished", call_id: "c", result: "" }];

it.each(["python", "run_python_code"])("is code while %s runs, and the terminal when it prints", (name) => {
  expect(paneOf(made(code(name)))).toBe("code");
  expect(paneOf(made(code(name), printed))).toBe("terminal");
  expect(paneOf(made(code(name), printed, finished))).toBeNull();
});

it("is code from the first letters that are written", () => {
  const begun: Told = [1, { kind: "tool_started", call_id: "c", name: "run_python_code" }];
  expect(paneOf(made(begun))).toBeNull();
  expect(paneOf(made(begun, [2, { kind: "tool_args_delta", call_id: "c", text: '{"code": "pri' }]))).toBe("code");
});

it("is nothing for tools that neither carry code nor print, and for a run that is over", () => {
  expect(paneOf(made([1, { kind: "tool_started", call_id: "c", name: "ls", args: { path: "/" } }]))).toBeNull();
  expect(paneOf(made(code("python"), [2, { kind: "run_cancelled" }]))).toBeNull();
});
