// @vitest-environment jsdom

import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => {
  vi.resetModules();
  localStorage.clear();
  delete document.documentElement.dataset.theme;
});

afterEach(cleanup);

test("the system decides until somebody chooses; a choice is kept", async () => {
  const { useTheme } = await import("./theme");
  const { result } = renderHook(() => useTheme());
  expect(result.current).toMatchObject({ choice: "system", dark: false });
  expect(document.documentElement.dataset.theme).toBe("light");
  act(() => result.current.set("dark"));
  expect(result.current).toMatchObject({ choice: "dark", dark: true });
  expect(document.documentElement.dataset.theme).toBe("dark");
  vi.resetModules();
  delete document.documentElement.dataset.theme;
  await import("./theme");
  expect(document.documentElement.dataset.theme).toBe("dark");
});

test("works where nothing can be kept", async () => {
  vi.spyOn(Storage.prototype, "getItem").mockImplementation(() => {
    throw new DOMException("denied", "SecurityError");
  });
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("denied", "SecurityError");
  });
  const { useTheme } = await import("./theme");
  const { result } = renderHook(() => useTheme());
  act(() => result.current.set("light"));
  expect(result.current.choice).toBe("light");
  expect(document.documentElement.dataset.theme).toBe("light");
});

test("a choice in another tab counts here too", async () => {
  const { useTheme } = await import("./theme");
  const { result } = renderHook(() => useTheme());
  localStorage.setItem("limelight.theme", '"dark"');
  act(() => void window.dispatchEvent(new StorageEvent("storage", { key: "limelight.theme" })));
  expect(result.current.choice).toBe("dark");
});
