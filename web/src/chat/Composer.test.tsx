import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it } from "vitest";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { Composer } from "./Composer";

installJsdomPolyfills();
afterEach(() => {
  cleanup();
  localStorage.clear();
});

function field(last: string | (() => Promise<string>)): HTMLTextAreaElement {
  render(<Composer sessionId={null} isBusy={false} last={last} onSend={() => {}} />);
  return screen.getByLabelText("Message");
}

it("brings back all of a message of which the log has the beginning", async () => {
  const text = field(() => Promise.resolve("a very long message"));
  await userEvent.keyboard("{ArrowUp}");
  expect(await screen.findByDisplayValue("a very long message")).toBe(text);
});

it("leaves what was typed while the message was on its way", async () => {
  let arrive = (_text: string) => {};
  const whole = new Promise<string>((resolve) => {
    arrive = resolve;
  });
  const text = field(() => whole);
  await userEvent.keyboard("{ArrowUp}new");
  arrive("old");
  await whole;
  expect(text.value).toBe("new");
});

it("says that the message could not be read", async () => {
  field(() => Promise.reject(new Error("gone")));
  await userEvent.keyboard("{ArrowUp}");
  expect(await screen.findByPlaceholderText("The last message could not be read")).toBeTruthy();
  await userEvent.keyboard("a{Backspace}");
  expect(screen.getByPlaceholderText("Ask …")).toBeTruthy();
});

it("lets a message run the way that its letters do", () => {
  expect(field("").dir).toBe("auto");
});
