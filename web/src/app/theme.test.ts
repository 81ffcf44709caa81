// @vitest-environment jsdom

import { beforeEach, expect, test, vi } from "vitest";
import { ThemeStore } from "./theme";

const applied = () => document.documentElement.dataset.theme;

beforeEach(() => {
  localStorage.clear();
  delete document.documentElement.dataset.theme;
});

test("the theme is the system's until the user chooses one, and the choice is stored", () => {
  const store = new ThemeStore();
  expect(store.getSnapshot()).toEqual({ choice: "system", isDark: false });
  expect(applied()).toBe("light");
  store.choose("dark");
  expect(store.getSnapshot()).toEqual({ choice: "dark", isDark: true });
  expect(applied()).toBe("dark");
  delete document.documentElement.dataset.theme;
  expect(new ThemeStore().getSnapshot().choice).toBe("dark");
  expect(applied()).toBe("dark");
});

test("a choice applies although the browser's storage refuses it", () => {
  for (const method of ["getItem", "setItem"] as const)
    vi.spyOn(Storage.prototype, method).mockImplementation(() => {
      throw new DOMException("denied", "SecurityError");
    });
  const store = new ThemeStore();
  store.choose("light");
  expect(store.getSnapshot().choice).toBe("light");
  expect(applied()).toBe("light");
  store.choose("system");
});

test("a choice that another tab stores applies here", () => {
  const store = new ThemeStore();
  localStorage.setItem("limelight.theme", '"dark"');
  window.dispatchEvent(new StorageEvent("storage", { key: "limelight.theme" }));
  expect(store.getSnapshot().choice).toBe("dark");
});
