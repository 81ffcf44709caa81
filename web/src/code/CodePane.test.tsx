import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { api } from "../client/api";
import { reduce } from "../log/reduce";
import { EMPTY, type SessionView, type ToolItem } from "../log/viewModel";
import { recordsOf } from "../testing/goldenTranscripts";
import { pythonCall } from "../testing/sampleRuns";
import { loadLanguage } from "../text/programmingLanguages";
import { download } from "../ui/download";
import type { AnyEvent } from "../wire/events";
import CodePane from "./CodePane";
import { versionsOf } from "./codeVersions";

vi.mock("../ui/download");
vi.mock("../text/programmingLanguages", { spy: true });

const EVENTS: AnyEvent[] = [
  { kind: "run_started", agent: "codact", turn: 1 },
  pythonCall("c", "first = 1\n"),
  { kind: "tool_output_delta", call_id: "c", text: "\u001b[31mred\u001b[0m\u001b]0;title\u0007 text" },
  { kind: "tool_finished", call_id: "c", result: "41", duration_ms: 1_300 },
  {
    kind: "tool_started",
    call_id: "d",
    name: "run_sql",
    args: { code: "select 2" },
    summary: "select 2",
    language: "sql",
    code_key: "code",
  },
  { kind: "tool_finished", call_id: "d", result: "Error: no table", error: "no table" },
  pythonCall("e", null),
  { kind: "tool_args_delta", call_id: "e", text: '{"code": "third' },
  { kind: "tool_args_delta", call_id: "e", text: " = 3" },
];

function after(count: number): SessionView {
  return reduce(EMPTY, recordsOf(EVENTS).slice(0, count));
}

function pane(count: number, focus: ToolItem | null = null, onSelect = () => {}) {
  return <CodePane runs={after(count).runs} focus={focus} onSelect={onSelect} />;
}

const code = () => screen.getByRole("textbox").textContent;
const step = () => screen.getByText(/^step \d/).textContent;

beforeEach(() => {
  // jsdom has no layout; CodeMirror measures lines, and the pane checks whether it is visible.
  const box = [new DOMRect(0, 0, 10, 10)] as unknown as DOMRectList;
  Range.prototype.getClientRects = () => box;
  vi.spyOn(Element.prototype, "getClientRects").mockReturnValue(box);
});
afterEach(cleanup);

it("an empty pane explains itself", () => {
  render(pane(1));
  expect(screen.getByText("When the agent writes code, it appears here, version by version.")).toBeTruthy();
});

it("the newest version is followed, and the editor stays mounted while code streams", () => {
  const { rerender } = render(pane(2));
  expect(code()).toBe("first = 1");
  rerender(pane(8));
  expect(step()).toBe("step 3 of 3");
  expect(code()).toBe("third");
  const editor = screen.getByRole("textbox");
  rerender(pane(9));
  expect(screen.getByRole("textbox")).toBe(editor);
  expect(code()).toBe("third = 3");
  expect(screen.getByText("being written")).toBeTruthy();
});

it("a selected version stays until the user follows again", async () => {
  const picked = vi.fn();
  const { rerender } = render(pane(6, null, picked));
  await userEvent.click(screen.getByRole("button", { name: "Previous step" }));
  expect(picked).toHaveBeenCalledWith(expect.objectContaining({ callId: "c" }));
  expect(code()).toBe("first = 1");
  rerender(pane(9));
  expect([step(), code()]).toEqual(["step 1 of 3", "first = 1"]);
  await userEvent.click(screen.getByRole("button", { name: "Follow" }));
  expect([step(), code()]).toEqual(["step 3 of 3", "third = 3"]);
  expect(screen.queryByRole("button", { name: "Follow" })).toBeNull();
});

it("[ and ] change the version, but not in a text field", async () => {
  render(
    <>
      <input aria-label="elsewhere" />
      {pane(9)}
    </>,
  );
  await userEvent.keyboard("[[[[");
  expect(step()).toBe("step 1 of 3");
  await userEvent.keyboard("]");
  expect(step()).toBe("step 2 of 3");
  await userEvent.click(screen.getByLabelText("elsewhere"));
  await userEvent.keyboard("]");
  expect(step()).toBe("step 2 of 3");
});

it("the menu lists the versions", async () => {
  render(pane(9));
  await userEvent.click(screen.getByText(/^step 3/));
  const choices = screen.getAllByRole("menuitemradio");
  expect(choices.map((choice) => choice.textContent)).toEqual([
    "first = 1step 1 · python · 1.3 s",
    expect.stringContaining("select 2step 2 · run_sql"),
    "third = 3step 3 · python",
  ]);
  await userEvent.click(screen.getByText("select 2"));
  expect(code()).toBe("select 2");
});

it("a call selected elsewhere selects its version", () => {
  const { rerender } = render(pane(9));
  const first = versionsOf(after(9).runs)[0]?.item ?? null;
  rerender(pane(9, first));
  expect(step()).toBe("step 1 of 3");
});

it("output has its colours, and the result follows it", async () => {
  render(pane(6));
  expect(screen.getByText("Error: no table").closest(".code-error")).not.toBeNull();
  await userEvent.keyboard("[[");
  expect(screen.getByText("red").className).toBe("ansi-red");
  expect(screen.getByRole("region", { name: "What it printed" }).textContent).toBe("red textresult41");
  expect(screen.getByText("1.3 s")).toBeTruthy();
});

it("changes since the previous version are marked", async () => {
  render(pane(6));
  await userEvent.click(screen.getByRole("button", { name: "Changes" }));
  expect(document.querySelector(".code-removed")?.textContent).toBe("first = 1");
  expect(document.querySelector(".code-added")?.textContent).toBe("select 2");
  await act(() => userEvent.click(screen.getByRole("button", { name: "Changes" })));
  expect(document.querySelector(".code-added")).toBeNull();
});

it("the code is downloaded with a file name", async () => {
  render(pane(6));
  await userEvent.click(screen.getByRole("button", { name: "Download step-2.sql" }));
  expect(download).toHaveBeenCalledWith("step-2.sql", ["select 2"], "text/plain");
});

it("code of an unknown language is shown as plain text", async () => {
  const load = vi.mocked(loadLanguage).mockClear();
  const start: AnyEvent = { kind: "run_started", agent: "a", turn: 1 };
  const call: AnyEvent = { ...pythonCall("c", "select 'a' -- b", "evaluate"), language: "text" };
  render(<CodePane runs={reduce(EMPTY, recordsOf([start, call])).runs} focus={null} onSelect={() => {}} />);
  expect(load).toHaveBeenCalledWith("text");
  expect(await act(async () => await load.mock.results[0]?.value)).toBeNull();
  expect(code()).toBe("select 'a' -- b");
  expect(document.querySelector(".cm-line span")).toBeNull();
  expect(screen.getByRole("button", { name: "Download step-1.txt" })).toBeTruthy();
});

it("truncated code is copied and downloaded in full", async () => {
  const cut = { size: 60, url: "x" };
  const view = after(6);
  const runs = view.runs.map((run) => ({
    ...run,
    items: run.items.map((item) =>
      item.kind === "tool" && item.callId === "d" ? { ...item, argsTruncation: cut } : item,
    ),
  }));
  const call = vi.spyOn(api, "toolCall").mockResolvedValue({
    call_id: "d",
    name: "run_sql",
    args: { code: "select 2 from everything" },
    output: "",
    result: null,
    error: null,
    media_type: "",
    size: 60,
  });
  const user = userEvent.setup();
  render(<CodePane runs={runs} focus={null} onSelect={() => {}} />);
  await user.click(screen.getByRole("button", { name: "Copy the code" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe("select 2 from everything");
  await user.click(screen.getByRole("button", { name: "Download step-2.sql" }));
  expect(download).toHaveBeenLastCalledWith("step-2.sql", ["select 2 from everything"], "text/plain");
  call.mockRejectedValue(new Error("gone"));
  await user.click(screen.getByRole("button", { name: "Download step-2.sql" }));
  expect(await screen.findByText("Could not download")).toBeTruthy();
});
