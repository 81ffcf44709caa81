// @vitest-environment jsdom

import { beforeEach, expect, it } from "vitest";
import { keep, kept, type Pending } from "./outbox";
import { remember } from "./storage";

const one = (requestId: string, at: number): Pending => ({
  requestId,
  text: requestId,
  ifBusy: "wait",
  at,
  error: null,
  runId: null,
});

beforeEach(() => localStorage.clear());

it("keeps messages in the order of their time, each session's apart", () => {
  keep("a", [], [one("late", 2), one("early", 1)]);
  keep("a.b", [], [one("other", 0)]);
  expect(kept("a").map((message) => message.requestId)).toEqual(["early", "late"]);
  expect(kept("a.b").map((message) => message.requestId)).toEqual(["other"]);
});

it("does not bring back what another tab took away, and leaves alone what another tab sent", () => {
  const mine = one("mine", 1);
  keep("a", [], [mine]);
  keep("a", [], [one("theirs", 2)]);
  remember("outbox.a.mine", null);
  keep("a", [mine], [{ ...mine, runId: "run_1" }]);
  expect(kept("a").map((message) => message.requestId)).toEqual(["theirs"]);
});
