// @vitest-environment jsdom

import { beforeEach, expect, it } from "vitest";
import { writeStored } from "./browserStorage";
import { loadOutbox, type OutboxMessage, saveOutbox } from "./outbox";

const one = (requestId: string, at: number): OutboxMessage => ({
  requestId,
  text: requestId,
  ifBusy: "wait",
  at,
  error: null,
  runId: null,
});

beforeEach(() => localStorage.clear());

it("messages are ordered by time and separated by session", () => {
  saveOutbox("a", [], [one("late", 2), one("early", 1)]);
  saveOutbox("a.b", [], [one("other", 0)]);
  expect(loadOutbox("a").map((message) => message.requestId)).toEqual(["early", "late"]);
  expect(loadOutbox("a.b").map((message) => message.requestId)).toEqual(["other"]);
});

it("a message that another tab removed is not stored again, and its messages stay", () => {
  const mine = one("mine", 1);
  saveOutbox("a", [], [mine]);
  saveOutbox("a", [], [one("theirs", 2)]);
  writeStored("outbox.a.mine", null);
  saveOutbox("a", [mine], [{ ...mine, runId: "run_1" }]);
  expect(loadOutbox("a").map((message) => message.requestId)).toEqual(["theirs"]);
});
