import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { CopyButton } from "./CopyButton";

installJsdomPolyfills();
afterEach(() => {
  cleanup();
  Reflect.deleteProperty(document, "execCommand");
});

/** Removes the clipboard API, as on a page without https, where only `execCommand` copies. */
function withoutClipboard(works: boolean): { copied: string } {
  const seen = { copied: "" };
  vi.stubGlobal("navigator", { ...navigator, clipboard: undefined });
  document.execCommand = (command) => {
    const field = document.activeElement;
    if (works && command === "copy" && field instanceof HTMLTextAreaElement) seen.copied = field.value;
    return works;
  };
  return seen;
}

it("a text that is fetched is copied when it arrives", async () => {
  const user = userEvent.setup();
  let arrive = (_text: string) => {};
  const whole = new Promise<string>((resolve) => {
    arrive = resolve;
  });
  render(<CopyButton label="Copy result" text={() => whole} />);
  await user.click(screen.getByRole("button", { name: "Copy result" }));
  expect(screen.getByText("Copying …")).toBeTruthy();
  arrive("all of it");
  expect(await screen.findByRole("button", { name: "Copied" })).toBeTruthy();
  expect(await navigator.clipboard.readText()).toBe("all of it");
});

it("a failed fetch shows an error", async () => {
  const user = userEvent.setup();
  render(<CopyButton text={() => Promise.reject(new Error("gone"))} />);
  await user.click(screen.getByRole("button"));
  expect(await screen.findByText("Could not copy")).toBeTruthy();
});

it.each([
  [true, "Copied", "a\nb"],
  [false, "Could not copy", ""],
])("without https the fallback is used, and its failure shown (%s)", async (works, name, copied) => {
  const user = userEvent.setup();
  const seen = withoutClipboard(works);
  render(<CopyButton text={"a\nb"} />);
  await user.click(screen.getByRole("button"));
  expect(await screen.findByRole("button", { name })).toBe(document.activeElement);
  expect(seen.copied).toBe(copied);
  expect(document.querySelector("textarea")).toBeNull();
  vi.unstubAllGlobals();
});
