import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import type { LiveSession, SessionStore } from "../client/session";
import { Watchable } from "../client/store";
import { ChatProvider } from "./context";
import { PendingMessage } from "./PendingMessage";

afterEach(cleanup);

it("says what it waits for, also when that changes under it", () => {
  const live = (endedAt: number | null) => ({ view: { runs: [{ endedAt }] } }) as unknown as LiveSession;
  const store = new Watchable(live(null));
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
