// @vitest-environment jsdom

import { beforeEach, expect, it, vi } from "vitest";
import { api } from "../wire/api";
import { AuthStore } from "./auth";
import { readStored, writeStored } from "./storage";

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

function unsent(): boolean {
  return (
    readStored("outbox.ann-s.1", "") !== "" ||
    readStored("draft.ann-s", "") !== "" ||
    readStored("fresh.ann-s", "") !== ""
  );
}

function write(): void {
  for (const key of ["outbox.ann-s.1", "draft.ann-s", "fresh.ann-s"]) writeStored(key, "mine");
}

it("keeps what somebody wrote for them, and for nobody else", async () => {
  const access = new AuthStore();
  access.reload = reload;
  user = "ann";
  await access.enter("key of ann");
  write();
  await access.enter("another key of ann");
  expect(unsent()).toBe(true);
  expect(reload).not.toHaveBeenCalled();
  user = "ben";
  await access.enter("key of ben");
  expect(unsent()).toBe(false);
  expect(location.hash).toBe("#/");
  expect(reload).toHaveBeenCalledOnce();
});

it("forgets what was not sent with the key", async () => {
  const access = new AuthStore();
  write();
  await access.leave();
  expect(unsent()).toBe(false);
  expect(access.getSnapshot().isLocked).toBe(true);
});
