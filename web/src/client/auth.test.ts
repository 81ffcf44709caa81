// @vitest-environment jsdom

import { beforeEach, expect, it, vi } from "vitest";
import { api } from "./api";
import { AuthStore } from "./auth";
import { readStored, writeStored } from "./browserStorage";

const KEYS = ["outbox.ann-s.1", "draft.ann-s", "fresh.ann-s"];
let user = "ann";
const reload = vi.fn();

beforeEach(() => {
  localStorage.clear();
  location.hash = "#/s/ann-s";
  reload.mockClear();
  vi.spyOn(api, "login").mockResolvedValue();
  vi.spyOn(api, "logout").mockResolvedValue();
  vi.spyOn(api, "me").mockImplementation(async () => ({ user, name: "", open: false }));
});

const writeUnsent = () => {
  for (const key of KEYS) writeStored(key, "mine");
};
const hasUnsent = () => KEYS.some((key) => readStored(key, "") !== "");

it("keeps unsent messages for the same user and removes them for another one", async () => {
  const auth = new AuthStore(reload);
  user = "ann";
  await auth.logIn("key of ann");
  writeUnsent();
  await auth.logIn("another key of ann");
  expect(hasUnsent()).toBe(true);
  expect(reload).not.toHaveBeenCalled();
  user = "ben";
  await auth.logIn("key of ben");
  expect(hasUnsent()).toBe(false);
  expect(location.hash).toBe("#/");
  expect(reload).toHaveBeenCalledOnce();
});

it("removes unsent messages and locks the page when the user logs out", async () => {
  const auth = new AuthStore(reload);
  writeUnsent();
  await auth.logOut();
  expect(hasUnsent()).toBe(false);
  expect(auth.getSnapshot().isLocked).toBe(true);
});
