// @vitest-environment jsdom

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { kept } from "./outbox";
import { forgetSession, recall, remember, remembered } from "./storage";
import { beginSession } from "./useSession";

const quota = () => {
  throw new DOMException("", "QuotaExceededError");
};

beforeEach(() => localStorage.clear());
afterEach(() => {
  vi.restoreAllMocks();
  for (const key of remembered("")) remember(key, null);
});

it("sees what the browser refused to keep, until it keeps it again", () => {
  remember("draft.s", "old");
  const full = vi.spyOn(Storage.prototype, "setItem").mockImplementation(quota);
  remember("draft.s", "new");
  expect(recall("draft.s", "")).toBe("new");
  expect(remembered("draft.")).toEqual(["draft.s"]);
  full.mockRestore();
  remember("draft.s", "newest");
  expect(recall("draft.s", "")).toBe("newest");
  expect(localStorage.getItem("limelight.draft.s")).toBe('"newest"');
});

it("does not see what the browser refused to let go", () => {
  remember("draft.s", "old");
  vi.spyOn(Storage.prototype, "removeItem").mockImplementation(quota);
  remember("draft.s", null);
  expect(recall("draft.s", "")).toBe("");
  expect(remembered("draft.")).toEqual([]);
});

it("keeps the first question without any storage", () => {
  vi.spyOn(globalThis, "localStorage", "get").mockImplementation(quota);
  const id = beginSession("hello", "demo");
  expect(recall(`fresh.${id}`, null)).toBe("demo");
  expect(kept(id)).toMatchObject([{ text: "hello" }]);
});

it("forgets all of a session, and nothing of another", () => {
  for (const key of ["draft.a", "fresh.a", "outbox.a.1", "draft.ab", "outbox.ab.1", "draft.new"]) remember(key, "x");
  forgetSession("a");
  expect(remembered("").sort()).toEqual(["draft.ab", "draft.new", "outbox.ab.1"]);
});

it("shares no keys with a server below another path of the same host name", async () => {
  history.replaceState(null, "", "/limelight/");
  vi.resetModules();
  const below = await import("./storage");
  history.replaceState(null, "", "/");
  below.remember("draft.s", "below");
  expect(recall("draft.s", "")).toBe("");
  expect(below.recall("draft.s", "")).toBe("below");
  expect(below.remembered("")).toEqual(["draft.s"]);
  remember("draft.s", "at the root");
  expect(below.recall("draft.s", "")).toBe("below");
});
