import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { ApiError, api, type ToolCall } from "../client/api";
import type { RunView, ToolItem } from "../log/viewModel";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { sampleRun } from "../testing/sampleRuns";
import type { JsonObject } from "../wire/events";
import { findErrorText, ToolDetails } from "./ToolDetails";

installJsdomPolyfills();
afterEach(cleanup);

function called(output: string, result: string, args: JsonObject = {}): RunView {
  return sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "run", args }],
    [2, { kind: "tool_output_delta", call_id: "c1", text: output }],
    [3, { kind: "tool_finished", call_id: "c1", result }],
  );
}

function show(run: RunView, change: Partial<ToolItem> = {}) {
  const tool = run.items.find((item) => item.kind === "tool");
  if (tool === undefined) throw new Error("no tool");
  const { container } = render(<ToolDetails run={run} tool={{ ...tool, ...change }} />);
  return [...container.querySelectorAll("pre")].map((block) => block.textContent);
}

it("a progress bar is shown in its last state, with its colours", () => {
  expect(show(called("\u001b[32m10%\r50%\rdone\u001b[0m\n", "ok"))).toEqual(["done\n", "ok"]);
  expect(screen.getByText("done").className).toBe("ansi-green");
});

it("a preview shows the end of the output and the beginning of the result", async () => {
  const [printed, result] = show(called(`first\n${"-".repeat(2000)}last`, `first${"-".repeat(2000)}last`));
  expect(printed).toMatch(/^-+last$/);
  expect(result).toMatch(/^first-+…$/);
  await userEvent.click(screen.getByRole("button", { name: "Show whole result" }));
  expect(screen.queryByText(/earlier output is hidden/)).toBeNull();
  expect(screen.getByText(/^first\s-+last$/)).toBeTruthy();
});

it("arguments with line breaks are shown as text", () => {
  expect(show(called("", "ok", { path: "a.md", text: "one\ntwo" }))).toContain("one\ntwo");
});

it("a truncated result is copied in full, and a failed fetch of the arguments shows an error", async () => {
  const user = userEvent.setup();
  const call = vi.spyOn(api, "toolCall").mockResolvedValue({ result: "all of it" } as ToolCall);
  const cut = { size: 20_000, url: "" };
  show(called("", "all"), { resultTruncation: cut, argsTruncation: cut });
  await user.click(screen.getByRole("button", { name: "Copy result" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe("all of it");
  call.mockRejectedValue(new ApiError("It is gone.", "", 404));
  await user.click(screen.getByRole("button", { name: "Show whole arguments (20 kB)" }));
  expect((await screen.findByRole("alert")).textContent).toBe("It is gone.");
});

it("a call without a visible result shows a note and no result", () => {
  const run = sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "run", args: {} }],
    [2, { kind: "tool_finished", call_id: "c1", result: "No result seen", result_seen: false }],
  );
  expect(show(run)).toEqual([]);
  expect(screen.getByText(/^No result seen: /)).toBeTruthy();
  expect(screen.queryByRole("note")).toBeNull();
  expect(screen.queryByRole("button", { name: "Copy result" })).toBeNull();
});

function failed(error: string): RunView {
  const kept = error.length > 2000 ? `${error.slice(0, 1999)}…` : error;
  return sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "run", args: {} }],
    [2, { kind: "tool_finished", call_id: "c1", result: `Error: ${error}`.slice(0, 10_000), error: kept }],
  );
}

const note = () => screen.getByRole("note").textContent ?? "";

it("an error that is complete in the result is shown and copied in full", async () => {
  const user = userEvent.setup();
  const error = `first${"-".repeat(5000)}last`;
  show(failed(error));
  expect(note()).toMatch(/^first-+…$/);
  expect(screen.queryByText("Result")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Copy error" }));
  expect(await navigator.clipboard.readText()).toBe(error);
  await user.click(screen.getByRole("button", { name: "Show whole error" }));
  expect(note()).toBe(error);
  expect(screen.queryByRole("button", { name: /Show whole/ })).toBeNull();
});

it("an error that the log truncates is fetched in full", async () => {
  const user = userEvent.setup();
  const error = `first${"-".repeat(50_000)}last`;
  const call = vi.spyOn(api, "toolCall").mockResolvedValue({ result: `Error: ${error}`, output: "" } as ToolCall);
  show(failed(error), { resultTruncation: { size: 50_016, url: "" } });
  await user.click(screen.getByRole("button", { name: "Copy error" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe(error);

  call.mockRejectedValueOnce(new ApiError("Not now.", "", 503));
  await user.click(screen.getByRole("button", { name: "Show whole error (50 kB)" }));
  expect((await screen.findByRole("alert")).textContent).toBe("Not now.");
  await user.click(screen.getByRole("button", { name: "Show whole error (50 kB)" }));
  await user.click(await screen.findByRole("button", { name: "Show more" }));
  await user.click(screen.getByRole("button", { name: "Show more" }));
  expect(note()).toBe(error);
  expect(screen.queryByRole("alert")).toBeNull();
});

it("a result beside an error is shown too", () => {
  const run = sampleRun(
    [1, { kind: "tool_started", call_id: "c1", name: "run", args: {} }],
    [2, { kind: "tool_finished", call_id: "c1", result: "three rows", error: "the fourth is broken" }],
  );
  expect(show(run)).toEqual(["the fourth is broken", "three rows"]);
});

it("a stopped call shows no error", () => {
  expect(show(failed("stopped"), { state: "stopped" })).toEqual([]);
});

it("the error text is found in a result that contains it", () => {
  const long = "x".repeat(5000);
  expect(findErrorText(`Error: ${long}`, `${long.slice(0, 1999)}…`)).toBe(long);
  expect(findErrorText("Error: no such file", "no such file")).toBe("no such file");
  expect(findErrorText("Error: Error: twice", "Error: twice")).toBe("Error: twice");
  expect(findErrorText("Error: once", "Error: once")).toBe("Error: once");
});

it("no error text is found in another result", () => {
  expect(findErrorText("three rows", "the fourth row is broken")).toBeNull();
  expect(findErrorText("", "rejected")).toBeNull();
});
