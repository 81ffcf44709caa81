// @vitest-environment jsdom

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { readStored, removeSessionData, storedKeys, writeStored } from "./browserStorage";
import { loadOutbox } from "./outbox";
import { createSession } from "./useSession";

const quota = () => {
  throw new DOMException("", "QuotaExceededError");
};

beforeEach(() => localStorage.clear());
afterEach(() => {
  vi.restoreAllMocks();
  for (const key of storedKeys("")) writeStored(key, null);
});

it("a value that the browser refuses is kept in memory until it can be stored", () => {
  writeStored("draft.s", "old");
  const full = vi.spyOn(Storage.prototype, "setItem").mockImplementation(quota);
  writeStored("draft.s", "new");
  expect(readStored("draft.s", "")).toBe("new");
  expect(storedKeys("draft.")).toEqual(["draft.s"]);
  full.mockRestore();
  writeStored("draft.s", "newest");
  expect(readStored("draft.s", "")).toBe("newest");
  expect(localStorage.getItem("limelight.draft.s")).toBe('"newest"');
});

it("a value that the browser refuses to remove is not read", () => {
  writeStored("draft.s", "old");
  vi.spyOn(Storage.prototype, "removeItem").mockImplementation(quota);
  writeStored("draft.s", null);
  expect(readStored("draft.s", "")).toBe("");
  expect(storedKeys("draft.")).toEqual([]);
});

it("the first message of a session is kept without any storage", () => {
  vi.spyOn(globalThis, "localStorage", "get").mockImplementation(quota);
  const id = createSession("hello", "demo");
  expect(readStored(`fresh.${id}`, null)).toBe("demo");
  expect(loadOutbox(id)).toMatchObject([{ text: "hello" }]);
});

it("removing a session's data leaves other sessions alone", () => {
  for (const key of ["draft.a", "fresh.a", "outbox.a.1", "draft.ab", "outbox.ab.1", "draft.new"]) writeStored(key, "x");
  removeSessionData("a");
  expect(storedKeys("").sort()).toEqual(["draft.ab", "draft.new", "outbox.ab.1"]);
});

it("a server at another path of the host shares no keys", async () => {
  history.replaceState(null, "", "/limelight/");
  vi.resetModules();
  const below = await import("./browserStorage");
  history.replaceState(null, "", "/");
  below.writeStored("draft.s", "below");
  expect(readStored("draft.s", "")).toBe("");
  expect(below.readStored("draft.s", "")).toBe("below");
  expect(below.storedKeys("")).toEqual(["draft.s"]);
  writeStored("draft.s", "at the root");
  expect(below.readStored("draft.s", "")).toBe("below");
});
