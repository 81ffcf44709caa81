import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { SessionList } from "../client/sessionList";
import { fakeSessionServer, sessionEntry } from "../testing/fakeSessions";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import type { Command } from "../ui/useShortcuts";
import { CommandPalette } from "./CommandPalette";

beforeAll(installJsdomPolyfills);
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function command(id: string, title: string, more: Partial<Command> = {}): Command {
  return { id, title, run: vi.fn(), ...more };
}

function show(commands: Command[]) {
  const onOpen = vi.fn();
  const onOpenChange = vi.fn();
  render(
    <CommandPalette open onOpenChange={onOpenChange} list={new SessionList()} commands={commands} onOpen={onOpen} />,
  );
  return { user: userEvent.setup(), onOpen, onOpenChange };
}

function options(): (string | null)[] {
  return screen.queryAllByRole("option").map((one) => one.querySelector(".palette-title")?.textContent ?? null);
}

test("without a text the palette lists recent sessions and all commands", async () => {
  fakeSessionServer(...["a", "b", "c", "d", "e", "f"].map((id) => sessionEntry(id, `About ${id}`)));
  show([command("new", "New conversation")]);
  await waitFor(() =>
    expect(options()).toEqual(["About a", "About b", "About c", "About d", "About e", "New conversation"]),
  );
});

test("a text finds commands, and sessions on the server", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"), sessionEntry("b", "Keys of a piano"));
  const keys = command("keys", "Keys");
  const { user, onOpen, onOpenChange } = show([command("new", "New conversation"), command("k", "Show keys"), keys]);
  await user.type(screen.getByRole("combobox"), "key");
  await waitFor(() => expect(options()).toEqual(["Keys", "Show keys", "Keys of a piano"]));
  await user.keyboard("{Enter}");
  await waitFor(() => expect(keys.run).toHaveBeenCalledOnce());
  expect(onOpenChange).toHaveBeenCalledWith(false);
  await user.keyboard("{ArrowUp}{Enter}");
  await waitFor(() => expect(onOpen).toHaveBeenCalledWith("b"));
});

test("a disabled command cannot be chosen", async () => {
  fakeSessionServer();
  const stop = command("stop", "Stop the agent", { disabled: true });
  const { user } = show([stop]);
  await user.type(screen.getByRole("combobox"), "stop{Enter}");
  expect(screen.getByRole("option").getAttribute("aria-disabled")).toBe("true");
  expect(stop.run).not.toHaveBeenCalled();
});

test("no match shows a message", async () => {
  fakeSessionServer(sessionEntry("a", "Bees"));
  const { user } = show([command("new", "New conversation")]);
  await user.type(screen.getByRole("combobox"), "xyz");
  expect(await screen.findByText("Nothing fits “xyz”.")).toBeTruthy();
});
