import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { api } from "../client/api";
import type { LiveSession, SessionStore } from "../client/sessionStore";
import { Store } from "../client/store";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { sampleRun } from "../testing/sampleRuns";
import { PendingMessage, UserMessage } from "./UserMessage";

installJsdomPolyfills();
afterEach(cleanup);

function showTruncated() {
  const run = { ...sampleRun(), input: "begin", inputTruncation: { size: 20_000, url: "" } };
  render(
    <TestChat>
      <UserMessage run={run} />
    </TestChat>,
  );
}

it("a truncated message is copied and shown in full", async () => {
  const user = userEvent.setup();
  vi.spyOn(api, "text").mockResolvedValue("beginning and end");
  showTruncated();
  await user.click(screen.getByRole("button", { name: "Copy message" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe("beginning and end");
  await user.click(screen.getByRole("button", { name: "Show the whole message (20 kB)" }));
  expect((await screen.findByText("beginning and end")).dir).toBe("auto");
});

it("a truncated message that cannot be fetched shows an error", async () => {
  vi.spyOn(api, "text").mockRejectedValue(new Error("gone"));
  showTruncated();
  await userEvent.click(screen.getByRole("button", { name: /^Show the whole/ }));
  expect((await screen.findByRole("alert")).textContent).toBe("It could not be read.");
});

it("a pending message shows whether a run is before it, also when that changes", () => {
  const live = (endedAt: number | null) => ({ view: { runs: [{ endedAt }] } }) as unknown as LiveSession;
  const store = new Store(live(null));
  const message = { requestId: "r", text: "hi", ifBusy: "wait", at: 0, error: null, runId: null } as const;
  render(
    <TestChat store={store as unknown as SessionStore}>
      <PendingMessage message={message} />
    </TestChat>,
  );
  expect(screen.getByText(/Waits for its turn/)).toBeTruthy();
  act(() => store.set(live(1)));
  expect(screen.getByText(/Sending/)).toBeTruthy();
});
