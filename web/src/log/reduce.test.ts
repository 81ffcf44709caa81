import { describe, expect, it } from "vitest";
import {
  dialectTranscripts,
  framesOf,
  sourceTranscripts,
  type Transcript,
  transcript,
} from "../testing/goldenTranscripts";
import { deepFreeze, joinDeltas, randomChunks, seededRandom, withoutTimes } from "../testing/recordSlices";
import { reduce } from "./reduce";
import { EMPTY, type Item, type RunView, type SessionView } from "./viewModel";

const ALL: Transcript[] = [...dialectTranscripts(), ...sourceTranscripts()];

it("transcripts of all dialects and frameworks are read", () => {
  expect(ALL.length).toBeGreaterThan(60);
});

describe.each(ALL)("$name", ({ records }) => {
  const whole = reduce(EMPTY, records);

  // requirement: page-reducer
  it("is the same record by record, at once and in chunks", () => {
    expect(records.reduce((view, record) => reduce(view, [record]), EMPTY)).toEqual(whole);
    for (const seed of [1, 2, 3, 4, 5])
      expect(randomChunks(records, seededRandom(seed)).reduce(reduce, EMPTY)).toEqual(whole);
  });

  // requirement: page-reducer
  it("is not changed by repeated records", () => {
    expect(reduce(whole, records)).toBe(whole);
    expect(reduce(EMPTY, [...records, ...records])).toEqual(whole);
    const random = seededRandom(7);
    let view: SessionView = EMPTY;
    for (let until = 1; until <= records.length; until += 1 + Math.floor(random() * 4)) {
      const from = Math.floor(random() * until);
      view = reduce(reduce(view, records.slice(0, until)), records.slice(from, until));
    }
    expect(reduce(view, records)).toEqual(whole);
  });

  it("is the same from joined deltas, apart from times", () => {
    expect(withoutTimes(reduce(EMPTY, joinDeltas(records)))).toEqual(withoutTimes(whole));
  });

  it("does not mutate the given view", () => {
    records.reduce((view, record) => deepFreeze(reduce(view, [record])), deepFreeze({ ...EMPTY }));
  });

  it("keeps the identity of equal parts", () => {
    let before: SessionView = EMPTY;
    for (const record of records) {
      const after = reduce(before, [record]);
      for (const run of after.runs)
        keepsIdentity(
          before.runs.find((one) => one.runId === run.runId),
          run,
        );
      before = after;
    }
  });

  it("has nothing open after the terminal event", () => {
    for (const run of whole.runs) {
      expect(["finished", "failed", "cancelled"]).toContain(run.state);
      expect(run.open.size).toBe(0);
      expect(run.endedAt).not.toBeNull();
      expect(run.items.filter(isOpen)).toEqual([]);
      expect([...run.agents.values()].filter((agent) => agent.state === "running" || agent.endedAt === null)).toEqual(
        [],
      );
    }
  });

  it("has addresses for all items, each listed by one agent", () => {
    for (const run of whole.runs) {
      expect(run.items.map((item) => item.key)).toEqual(run.items.map((_, index) => `${run.runId}/${index}`));
      const listed = [...run.agents.values()].flatMap((agent) => agent.items);
      expect(listed.toSorted((one, other) => one - other)).toEqual(run.items.map((item) => item.index));
    }
  });
});

function isOpen(item: Item): boolean {
  if (item.kind === "tool" || item.kind === "step") return item.state === "running" || item.state === "waiting";
  if (item.kind === "todos") return item.state === "running";
  if (item.kind === "text" || item.kind === "thought") return item.endedAt === null;
  return item.kind === "approval" && item.decision === null;
}

function keepsIdentity(before: RunView | undefined, after: RunView): void {
  if (before === undefined) return;
  for (const [index, item] of before.items.entries()) {
    const now = after.items[index];
    if (now !== item) expect(now).not.toEqual(item);
  }
  for (const [id, agent] of before.agents) {
    const now = after.agents.get(id);
    if (now !== agent) expect(now).not.toEqual(agent);
  }
  for (const list of ["terminal", "codes", "agents", "open"] as const)
    if (after[list] !== before[list]) expect(after[list], list).not.toEqual(before[list]);
}

it.each(["nested_answer", "answer_never_streamed"])(
  "the answer of %s is the one that the server sends as typed",
  (name) => {
    const answer = reduce(EMPTY, transcript(name)).runs[0]?.answer;
    const sent = framesOf(name).find((frame) => frame.type === "answer")?.data;
    expect(answer).toMatchObject({ title: sent?.title, content: sent?.content, sources: sent?.sources });
    expect(answer?.sourceLinks).toEqual(sent?.source_links);
  },
);

it("a structured answer inside of an answer is text", () => {
  const answer = reduce(EMPTY, transcript("nested_answer")).runs[0]?.answer;
  expect(answer?.content).toBe('{"title":"inner","content":"They dance."}');
  expect(answer?.sourceLinks).toEqual([
    { title: "Bees", url: "https://example.org/bees" },
    { title: "Winter", url: "https://example.org/winter" },
    { title: "A book", url: "" },
  ]);
});
