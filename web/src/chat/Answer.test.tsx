import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { recordsOf } from "../log/golden";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/view";
import { fillGaps } from "../parts/jsdomGaps";
import { sourceOf } from "../text/structured";
import { ApiError, api } from "../wire/api";
import { Answer } from "./Answer";

vi.mock("../text/structured", { spy: true });
fillGaps();
afterEach(cleanup);

function answered(content: string, isCut = false): RunView {
  const { runs } = reduce(
    EMPTY,
    recordsOf([
      { kind: "run_started", agent: "a", turn: 1 },
      { kind: "final_answer", content, sources: ["https://a.example/"] },
    ]),
  );
  const run = runs[0];
  if (run?.answer == null) throw new Error("no answer");
  return { ...run, answer: { ...run.answer, cut: isCut ? { size: 20_000, url: "" } : null } };
}

it("copies the content of a long answer that is an object", async () => {
  const user = userEvent.setup();
  vi.spyOn(api, "text").mockResolvedValue('{"title": "T", "content": "all of it"}');
  render(<Answer run={answered("all", true)} />);
  await user.click(screen.getByRole("button", { name: "Copy answer" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe("all of it");
});

it("says why the whole is not shown", async () => {
  vi.spyOn(api, "text").mockRejectedValue(new ApiError("The server cannot be reached.", "unreachable", 0));
  render(<Answer run={answered("all", true)} />);
  await userEvent.click(screen.getByRole("button", { name: "Show the whole answer (20 kB)" }));
  expect((await screen.findByRole("alert")).textContent).toBe("The server cannot be reached.");
});

it("draws its body once while the run goes on", () => {
  const run = answered('{"content": {"a": 1}}');
  const drawn = vi.mocked(sourceOf);
  const { rerender } = render(<Answer run={run} />);
  const before = drawn.mock.calls.length;
  rerender(<Answer run={{ ...run, lastAt: run.lastAt + 1 }} />);
  expect(before).toBeGreaterThan(0);
  expect(drawn.mock.calls.length).toBe(before);
});
