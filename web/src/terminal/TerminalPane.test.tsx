import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { recordsOf } from "../testing/goldenTranscripts";
import { pythonCall } from "../testing/sampleRuns";
import { stripAnsi } from "../text/sanitizeAnsi";
import type { AnyEvent } from "../wire/events";
import TerminalPane from "./TerminalPane";
import type { Written } from "./terminalWriter";
import { type ScreenListener, XtermScreen } from "./xtermScreen";

// xterm.js needs a canvas, which jsdom does not have.
vi.mock("./xtermScreen", () => ({
  XtermScreen: vi.fn(
    class {
      write = vi.fn();
      scroll = vi.fn();
      find = vi.fn();
      selectAll = vi.fn();
      dispose = vi.fn();
    },
  ),
}));

const EVENTS: AnyEvent[] = [
  { kind: "run_started", agent: "codact", input: "go" },
  pythonCall("c", "print(1)"),
  { kind: "tool_output_delta", call_id: "c", text: "one\n" },
  { kind: "tool_output_delta", call_id: "c", text: "two\n" },
];

function runsAfter(count: number, runId = "run_0"): readonly RunView[] {
  return reduce(EMPTY, recordsOf(EVENTS, runId).slice(0, count)).runs;
}

function xterm() {
  const made = vi.mocked(XtermScreen);
  const [, watcher] = made.mock.calls.at(-1) ?? [];
  const instance = made.mock.instances.at(-1);
  if (watcher === undefined || instance === undefined) throw new Error("no screen");
  return { watcher: watcher as ScreenListener, instance: vi.mocked(instance) };
}

function written(): Written[] {
  return xterm().instance.write.mock.calls.map(([one]) => one);
}

beforeEach(() => {
  vi.mocked(XtermScreen).mockClear();
});
afterEach(cleanup);

it("an empty terminal shows a message", () => {
  const { rerender } = render(<TerminalPane runs={runsAfter(1)} />);
  expect(screen.getByText("Nothing has been printed yet")).toBeTruthy();
  rerender(<TerminalPane runs={runsAfter(2)} />);
  expect(screen.queryByText("Nothing has been printed yet")).toBeNull();
});

it("only new output is written", () => {
  const { rerender } = render(<TerminalPane runs={runsAfter(3)} />);
  rerender(<TerminalPane runs={runsAfter(4)} />);
  expect(written().map(({ text }) => stripAnsi(text))).toEqual(["— turn 1 · go —\n❯ python print(1)\none\n", "two\n"]);
});

it("another session clears the terminal", () => {
  const { rerender } = render(<TerminalPane runs={runsAfter(3)} />);
  rerender(<TerminalPane runs={runsAfter(3, "run_9")} />);
  expect(written().map(({ startOver }) => startOver)).toEqual([false, true]);
});

it("a user who scrolled up can jump to the end", async () => {
  render(<TerminalPane runs={runsAfter(4)} />);
  const { watcher, instance } = xterm();
  expect(screen.queryByRole("button", { name: "Jump to now" })).toBeNull();
  act(() => watcher.onFollow(false));
  await userEvent.click(screen.getByRole("button", { name: "Jump to now" }));
  expect(instance.scroll).toHaveBeenCalledWith("end");
  expect(document.activeElement).toBe(screen.getByRole("region", { name: "Terminal output" }));
});

it("keys scroll the terminal", async () => {
  render(<TerminalPane runs={runsAfter(4)} />);
  act(() => screen.getByRole("region", { name: "Terminal output" }).focus());
  await userEvent.keyboard("{PageUp}{PageDown}{Home}{End}{ArrowUp}x");
  expect(xterm().instance.scroll.mock.calls.map(([to]) => to)).toEqual(["page up", "page down", "begin", "end", -1]);
});

it("the find bar finds text, or shows that there is none", async () => {
  render(<TerminalPane runs={runsAfter(4)} />);
  const { instance } = xterm();
  instance.find.mockImplementation((text) => text.length < 3);
  act(() => screen.getByRole("region", { name: "Terminal output" }).focus());
  await userEvent.keyboard("{Control>}f{/Control}on{Enter}{Shift>}{Enter}{/Shift}");
  expect(instance.find.mock.calls).toEqual([
    ["o", "typed"],
    ["on", "typed"],
    ["on", "next"],
    ["on", "previous"],
  ]);
  expect(screen.queryByText("not found")).toBeNull();
  await userEvent.keyboard("x");
  expect(screen.getByText("not found")).toBeTruthy();
  await userEvent.keyboard("{Escape}");
  expect(instance.find).toHaveBeenLastCalledWith("", "typed");
});

it("the whole transcript is copied as plain text", async () => {
  const user = userEvent.setup();
  render(<TerminalPane runs={runsAfter(4)} />);
  await user.click(screen.getByRole("button", { name: "Copy all as plain text" }));
  expect(await navigator.clipboard.readText()).toBe("— turn 1 · go —\n❯ python print(1)\none\ntwo\n");
});

it("screen readers get the output as text", () => {
  render(<TerminalPane runs={runsAfter(4)} />);
  expect(screen.getByRole("region", { name: "Terminal output" }).textContent).toContain("one\ntwo");
});

it("unmounting disposes of the screen", () => {
  const { unmount } = render(<TerminalPane runs={runsAfter(4)} />);
  const { instance } = xterm();
  unmount();
  expect(instance.dispose).toHaveBeenCalledOnce();
});
