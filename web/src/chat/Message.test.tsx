import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { ApiError, api } from "../client/api";
import { reduce } from "../log/reduce";
import { EMPTY, type Item, type RunView } from "../log/viewModel";
import { recordsOf } from "../testing/goldenTranscripts";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { safeUrl } from "../text/safeUrls";
import type { AnyEvent } from "../wire/events";
import { Message } from "./Message";

vi.mock("../text/safeUrls", { spy: true });
installJsdomPolyfills();
afterEach(cleanup);

function answered(content: string, isTruncated = false): RunView {
  const { runs } = reduce(
    EMPTY,
    recordsOf([
      { kind: "run_started", agent: "a", turn: 1 },
      { kind: "final_answer", content, source_links: [{ title: "", url: "https://a.example/" }] },
    ]),
  );
  const run = runs[0];
  if (run?.answer == null) throw new Error("no answer");
  return { ...run, answer: { ...run.answer, truncation: isTruncated ? { size: 20_000, url: "" } : null } };
}

function drawn(run: RunView, item: Item | null = null) {
  if (item !== null && item.kind !== "text") throw new Error("no text");
  return (
    <TestChat>
      <Message run={run} item={item} isAnswer />
    </TestChat>
  );
}

it("copying a truncated structured answer copies its full content", async () => {
  const user = userEvent.setup();
  const load = vi.spyOn(api, "text").mockResolvedValue("all of it");
  render(drawn(answered("all", true)));
  await user.click(screen.getByRole("button", { name: "Copy answer" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(load).toHaveBeenCalledWith("runs/run_0/answer?text=1");
  expect(await navigator.clipboard.readText()).toBe("all of it");
});

it("a failed fetch of the full answer shows the server's message", async () => {
  vi.spyOn(api, "text").mockRejectedValue(new ApiError("The server cannot be reached.", "unreachable", 0));
  render(drawn(answered("all", true)));
  await userEvent.click(screen.getByRole("button", { name: "Show the whole answer (20 kB)" }));
  expect((await screen.findByRole("alert")).textContent).toBe("The server cannot be reached.");
});

it("the body of an answer does not render again while the run continues", () => {
  const run = answered('{"content": {"a": 1}}');
  const made = vi.mocked(safeUrl);
  const { rerender } = render(drawn(run));
  const before = made.mock.calls.length;
  rerender(drawn({ ...run, lastAt: run.lastAt + 1 }));
  expect(before).toBeGreaterThan(0);
  expect(made.mock.calls.length).toBe(before);
});

it("a text stays mounted when it becomes the answer", () => {
  const said: AnyEvent[] = [
    { kind: "run_started", agent: "a", turn: 1 },
    { kind: "text_delta", message_id: "m", text: "# Bees\n\nThey **dance**." },
  ];
  const end: AnyEvent[] = [
    { kind: "text_finished", message_id: "m" },
    { kind: "final_answer", content: "# Bees\n\nThey **dance**." },
  ];
  const run = (events: AnyEvent[]) => reduce(EMPTY, recordsOf(events)).runs[0] as RunView;
  const [before, after] = [run(said), run([...said, ...end])];
  const { rerender } = render(drawn(before, before.items[0]));
  const words = screen.getByText("dance");
  expect(screen.queryByRole("button", { name: "Copy answer" })).toBeNull();
  rerender(drawn(after, after.items[0]));
  expect(screen.getByRole("article", { name: "Answer" }).contains(words)).toBe(true);
  expect(screen.getByRole("button", { name: "Copy answer" })).toBeTruthy();
});
