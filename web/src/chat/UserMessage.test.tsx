import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import type { LiveSession, SessionStore } from "../client/session";
import { Store } from "../client/store";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { sampleRun } from "../testing/sampleRuns";
import { api } from "../wire/api";
import { type ChatContext, ChatProvider } from "./context";
import { PendingMessage, UserMessage } from "./UserMessage";

installJsdomPolyfills();
afterEach(cleanup);

function show() {
  const run = { ...sampleRun(), input: "begin", inputTruncation: { size: 20_000, url: "" } };
  render(
    <ChatProvider value={{ store: { sessionId: "s" } } as unknown as ChatContext}>
      <UserMessage run={run} />
    </ChatProvider>,
  );
}

it("copies and shows the whole of a long message", async () => {
  const user = userEvent.setup();
  vi.spyOn(api, "text").mockResolvedValue("beginning and end");
  show();
  await user.click(screen.getByRole("button", { name: "Copy message" }));
  await screen.findByRole("button", { name: "Copied" });
  expect(await navigator.clipboard.readText()).toBe("beginning and end");
  await user.click(screen.getByRole("button", { name: "Show the whole message (20 kB)" }));
  expect((await screen.findByText("beginning and end")).dir).toBe("auto");
});

it("says that the whole could not be read", async () => {
  vi.spyOn(api, "text").mockRejectedValue(new Error("gone"));
  show();
  await userEvent.click(screen.getByRole("button", { name: /^Show the whole/ }));
  expect((await screen.findByRole("alert")).textContent).toBe("It could not be read.");
});

afterEach(cleanup);

it("says what it waits for, also when that changes under it", () => {
  const live = (endedAt: number | null) => ({ view: { runs: [{ endedAt }] } }) as unknown as LiveSession;
  const store = new Store(live(null));
  const pending = { requestId: "r", text: "hi", ifBusy: "wait", at: 0, error: null, runId: null } as const;
  const chat = { store: store as unknown as SessionStore, deciding: new Set<string>(), focus: null, words: [] };
  render(
    <ChatProvider value={{ ...chat, pick() {} }}>
      <PendingMessage pending={pending} />
    </ChatProvider>,
  );
  expect(screen.getByText(/Waits for its turn/)).toBeTruthy();
  act(() => store.set(live(1)));
  expect(screen.getByText(/Sending/)).toBeTruthy();
});
