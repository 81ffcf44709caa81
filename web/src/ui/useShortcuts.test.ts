// @vitest-environment jsdom

import { cleanup, fireEvent, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keyLabels, type Shortcut, useShortcuts } from "./useShortcuts";

let ran: string[];

beforeEach(() => {
  ran = [];
  vi.spyOn(navigator, "platform", "get").mockReturnValue("Linux x86_64");
});
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

function bound(keys: string, more: Partial<Shortcut> = {}): Shortcut {
  return { keys, title: keys, run: () => ran.push(keys), ...more };
}

function use(...bindings: Shortcut[]) {
  return renderHook(({ all }) => useShortcuts(all), { initialProps: { all: bindings } });
}

function element(html: "input" | "textarea" | "button" | "div", role = ""): HTMLElement {
  const made = document.createElement(html);
  if (role) made.setAttribute("role", role);
  document.body.append(made);
  return made;
}

test("a shortcut needs exactly its modifiers", () => {
  use(bound("mod+k"), bound("mod+shift+o"));
  expect(fireEvent.keyDown(document.body, { key: "k" })).toBe(true);
  expect(fireEvent.keyDown(document.body, { key: "k", ctrlKey: true, shiftKey: true })).toBe(true);
  expect(ran).toEqual([]);
  expect(fireEvent.keyDown(document.body, { key: "k", ctrlKey: true })).toBe(false);
  fireEvent.keyDown(document.body, { key: "O", ctrlKey: true, shiftKey: true });
  expect(ran).toEqual(["mod+k", "mod+shift+o"]);
});

test("mod is the command key on a Mac", () => {
  vi.spyOn(navigator, "platform", "get").mockReturnValue("MacIntel");
  use(bound("mod+k"));
  fireEvent.keyDown(document.body, { key: "k", ctrlKey: true });
  expect(ran).toEqual([]);
  fireEvent.keyDown(document.body, { key: "k", metaKey: true });
  expect(ran).toEqual(["mod+k"]);
});

test("symbols work with and without Shift", () => {
  use(bound("?"), bound("["));
  fireEvent.keyDown(document.body, { key: "?", shiftKey: true });
  fireEvent.keyDown(document.body, { key: "?" });
  fireEvent.keyDown(document.body, { key: "[" });
  expect(ran).toEqual(["?", "?", "["]);
});

test("a symbol with AltGr works where it is reported as Ctrl and Alt", () => {
  use(bound("["));
  fireEvent.keyDown(document.body, { key: "[", ctrlKey: true, altKey: true });
  expect(ran).toEqual([]);
  fireEvent.keyDown(document.body, { key: "[", ctrlKey: true, altKey: true, modifierAltGraph: true });
  expect(ran).toEqual(["["]);
});

test("in a text field only shortcuts for fields work", () => {
  use(bound("/"), bound("esc", { inFields: true }));
  for (const field of [element("input"), element("textarea")]) {
    fireEvent.keyDown(field, { key: "/" });
    fireEvent.keyDown(field, { key: "Escape" });
  }
  expect(ran).toEqual(["esc", "esc"]);
  const check = element("input");
  check.setAttribute("type", "checkbox");
  fireEvent.keyDown(check, { key: "/" });
  fireEvent.keyDown(element("button"), { key: "/" });
  expect(ran).toEqual(["esc", "esc", "/", "/"]);
});

test("keys of an input method are ignored", () => {
  use(bound("esc", { inFields: true }));
  fireEvent.keyDown(element("input"), { key: "Escape", isComposing: true });
  expect(ran).toEqual([]);
});

test("under a dialog only shortcuts for dialogs work", () => {
  use(bound("["), bound("mod+k", { overDialogs: true }));
  element("div", "dialog");
  fireEvent.keyDown(document.body, { key: "[" });
  fireEvent.keyDown(document.body, { key: "k", ctrlKey: true });
  expect(ran).toEqual(["mod+k"]);
});

test("a handled event is ignored", () => {
  use(bound("esc"));
  const field = element("div");
  field.addEventListener("keydown", (event) => event.preventDefault());
  fireEvent.keyDown(field, { key: "Escape" });
  expect(ran).toEqual([]);
});

test("a sequence of two keys is one shortcut", () => {
  use(bound("g c"), bound("g t"), bound("c"));
  fireEvent.keyDown(document.body, { key: "g" });
  fireEvent.keyDown(document.body, { key: "t" });
  fireEvent.keyDown(document.body, { key: "c" });
  fireEvent.keyDown(document.body, { key: "g" });
  fireEvent.keyDown(document.body, { key: "c" });
  expect(ran).toEqual(["g t", "c", "g c"]);
});

test("shortcuts can change and can be disabled", () => {
  const { rerender, unmount } = use(bound("a"));
  rerender({ all: [bound("b"), bound("c", { disabled: true })] });
  for (const key of ["a", "b", "c"]) fireEvent.keyDown(document.body, { key });
  expect(ran).toEqual(["b"]);
  unmount();
  fireEvent.keyDown(document.body, { key: "b" });
  expect(ran).toEqual(["b"]);
});

test("keyLabels returns the labels of the keys", () => {
  expect(keyLabels("mod+shift+o", true)).toEqual(["⌘", "⇧", "O"]);
  expect(keyLabels("mod+k", false)).toEqual(["Ctrl", "K"]);
  expect(keyLabels("g c", false)).toEqual(["G", "C"]);
  expect(keyLabels("plus", false)).toEqual(["+"]);
  expect(keyLabels("-", false)).toEqual(["-"]);
});
