import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { api } from "../client/api";
import { MAX_RESULT } from "../client/searchTexts";
import { type Filter, NO_FILTER } from "../log/search";
import type { RunView } from "../log/viewModel";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { sampleRun } from "../testing/sampleRuns";
import { ConversationSearchResults } from "./ConversationSearchResults";

// jsdom has no layout, which the virtual list needs to choose its rows.
vi.mock("virtua", () => ({ VList: ({ children }: { children: ReactNode }) => <div>{children}</div> }));
installJsdomPolyfills();
afterEach(cleanup);

const run = sampleRun(
  [1, { kind: "tool_started", call_id: "c1", name: "read", args: {} }],
  [2, { kind: "tool_finished", call_id: "c1", result: "hay" }],
  [3, { kind: "final_answer", content: "Gold was found.", title: "" }],
);

function cut(size: number): RunView {
  const items = run.items.map((item) =>
    item.kind === "tool" ? { ...item, resultTruncation: { size, url: "" } } : item,
  );
  return { ...run, items };
}

function show(of: RunView, filter: Partial<Filter>, select = vi.fn()) {
  render(
    <TestChat select={select}>
      <ConversationSearchResults runs={[of]} filter={{ ...NO_FILTER, ...filter }} />
    </TestChat>,
  );
  return select;
}

it("an answer that was not streamed is shown and selects its run", async () => {
  const select = show(run, { text: "gold" });
  expect(screen.getByRole("status").textContent).toBe("1 hit");
  expect(screen.getByText("Gold was found.")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Show in place" }));
  expect(select).toHaveBeenCalledWith(run, null);
});

it("a failed fetch of a truncated result is reported and can be retried", async () => {
  const call = vi.spyOn(api, "toolCall").mockRejectedValue(new Error("gone"));
  show(cut(20_000), { text: "needle" });
  expect(await screen.findByText("Nothing found · 1 long result could not be read")).toBeTruthy();
  expect(call).toHaveBeenCalledTimes(1);
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(call).toHaveBeenCalledTimes(2);
});

it("results and messages that are too long to be searched are reported", () => {
  show({ ...cut(MAX_RESULT + 1), inputTruncation: { size: 20_000, url: "" } }, { text: "needle" });
  expect(screen.getByRole("status").textContent).toBe(
    "Nothing found · only the beginning of 1 very long result was searched · only the beginning of 1 long message was searched",
  );
});
