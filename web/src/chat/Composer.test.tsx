import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { Composer } from "./Composer";

installJsdomPolyfills();
afterEach(() => {
  cleanup();
  localStorage.clear();
});

function field(last: string | (() => Promise<string>)): HTMLTextAreaElement {
  render(<Composer sessionId={null} last={last} onSend={() => {}} />);
  return screen.getByLabelText("Message");
}

it("↑ fetches the complete text of a truncated last message", async () => {
  const text = field(() => Promise.resolve("a very long message"));
  await userEvent.keyboard("{ArrowUp}");
  expect(await screen.findByDisplayValue("a very long message")).toBe(text);
});

it("text typed during the fetch of the last message is kept", async () => {
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

it("a failed fetch of the last message shows an error until the user types", async () => {
  field(() => Promise.reject(new Error("gone")));
  await userEvent.keyboard("{ArrowUp}");
  expect(await screen.findByPlaceholderText("The last message could not be read")).toBeTruthy();
  await userEvent.keyboard("a{Backspace}");
  expect(screen.getByPlaceholderText("Ask …")).toBeTruthy();
});

it("the field has automatic text direction", () => {
  expect(field("").dir).toBe("auto");
});

const WAITING = "Sent as soon as the page is ready";

it("a message that is sent before the page is ready waits in the field and is then sent once", async () => {
  const onSend = vi.fn();
  const { rerender } = render(<Composer sessionId={null} isReady={false} onSend={onSend} />);
  await userEvent.keyboard("Hello{Enter}{Enter}");
  expect(screen.getByText(WAITING)).toBeTruthy();
  expect(screen.getByDisplayValue("Hello")).toBeTruthy();
  expect(onSend).not.toHaveBeenCalled();
  rerender(<Composer sessionId={null} isReady onSend={onSend} />);
  expect(onSend.mock.calls).toEqual([["Hello", "wait", {}]]);
  expect(screen.queryByText(WAITING)).toBe(null);
  expect(screen.queryByDisplayValue("Hello")).toBe(null);
});

it("the send button works before the page is ready", async () => {
  const onSend = vi.fn();
  const { rerender } = render(<Composer sessionId={null} isReady={false} onSend={onSend} />);
  await userEvent.keyboard("Hello");
  await userEvent.click(screen.getByRole("button", { name: "Send" }));
  rerender(<Composer sessionId={null} isReady onSend={onSend} />);
  expect(onSend.mock.calls).toEqual([["Hello", "wait", {}]]);
});

it("a waiting message that is edited is not sent until it is sent again", async () => {
  const onSend = vi.fn();
  const { rerender } = render(<Composer sessionId={null} isReady={false} onSend={onSend} />);
  await userEvent.keyboard("Hello{Enter} you");
  expect(screen.queryByText(WAITING)).toBe(null);
  rerender(<Composer sessionId={null} isReady onSend={onSend} />);
  expect(onSend).not.toHaveBeenCalled();
  await userEvent.keyboard("{Enter}");
  expect(onSend.mock.calls).toEqual([["Hello you", "wait", {}]]);
});
