// @vitest-environment jsdom

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SessionEntry, SessionPage } from "./api";
import { readStored, writeStored } from "./browserStorage";
import { SessionList } from "./sessionList";

type Answer = SessionPage | SessionEntry | number | Error;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly body: unknown;
  readonly answer: (given: Answer) => Promise<void>;
}

let asked: Asked[];
let unsubscribe: () => void;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  unsubscribe = () => {};
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(url);
    return new Promise<Response>((resolve, reject) => {
      init.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
      const answer = async (given: Answer) => {
        if (given instanceof Error) reject(given);
        else if (given === 204) resolve(new Response(null, { status: 204 }));
        else if (typeof given === "number") resolve(Response.json({ detail: `no ${given}` }, { status: given }));
        else resolve(Response.json(given));
        await vi.advanceTimersByTimeAsync(0);
      };
      const body = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
      const query = Object.fromEntries(searchParams);
      asked.push({ method: init.method ?? "GET", path: pathname, query, body, answer });
    });
  });
});

afterEach(() => {
  unsubscribe();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function entry(id: string, at: number, more: Partial<SessionEntry> = {}): SessionEntry {
  const known = {
    agent: "deep",
    state: "completed",
    created_at: at,
    turns: 1,
    last_seq: 9,
    run_id: null,
    run_state: null,
  } as const;
  return { session_id: id, title: `About ${id}`, active_at: at, ...known, ...more };
}

function page(entries: SessionEntry[], next: string | null = null): SessionPage {
  return { sessions: entries, next };
}

function watched() {
  const list = new SessionList();
  const changed = vi.fn();
  unsubscribe = list.subscribe(changed);
  return { list, changed };
}

function ids(list: SessionList): string[] {
  return list.getSnapshot().entries.map((one) => one.session_id);
}

function request(at: number): Asked {
  const found = asked.at(at);
  if (found === undefined) throw new Error(`no request ${at} among ${asked.length}`);
  return found;
}

test("the list is requested every four seconds while it has subscribers", async () => {
  const { list } = watched();
  expect(list.getSnapshot().loading).toBe(true);
  await request(-1).answer(page([entry("a", 1)]));
  expect(ids(list)).toEqual(["a"]);
  expect(list.getSnapshot().loading).toBe(false);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(asked).toHaveLength(2);
  await request(-1).answer(page([]));
  expect(ids(list)).toEqual([]);
  unsubscribe();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(2);
});

test("a hidden tab polls less often, and at once when it is visible again", async () => {
  const seen = vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  watched();
  await request(-1).answer(page([]));
  await vi.advanceTimersByTimeAsync(14_000);
  expect(asked).toHaveLength(1);
  seen.mockReturnValue("visible");
  document.dispatchEvent(new Event("visibilitychange"));
  expect(asked).toHaveLength(2);
});

test("unchanged entries stay the same objects and notify no subscriber", async () => {
  const { list, changed } = watched();
  await request(-1).answer(page([entry("b", 2), entry("a", 1)]));
  const before = list.getSnapshot();
  changed.mockClear();
  void list.refresh();
  await request(-1).answer(page([entry("b", 2), entry("a", 1)]));
  expect(list.getSnapshot()).toBe(before);
  expect(changed).not.toHaveBeenCalled();
  void list.refresh();
  await request(-1).answer(page([entry("a", 3), entry("b", 2)]));
  expect(ids(list)).toEqual(["a", "b"]);
  expect(list.getSnapshot().entries[1]).toBe(before.entries[0]);
});

test("later pages stay while the first is read again, and missing entries are removed", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("d", 4), entry("c", 3)], "3"));
  void list.more();
  void list.more();
  expect(asked.filter((one) => one.query.after === "3")).toHaveLength(1);
  await request(-1).answer(page([entry("b", 2), entry("a", 1)], "1"));
  expect(ids(list)).toEqual(["d", "c", "b", "a"]);
  expect(list.getSnapshot().hasMore).toBe(true);
  void list.refresh();
  await request(-1).answer(page([entry("e", 5), entry("c", 3)], "3"));
  expect(ids(list)).toEqual(["e", "c", "b", "a"]);
  void list.more();
  expect(request(-1).query.after).toBe("1");
  await request(-1).answer(page([entry("z", 0)]));
  expect(ids(list)).toEqual(["e", "c", "b", "a", "z"]);
  expect(list.getSnapshot().hasMore).toBe(false);
});

test("a search is sent when the typing pauses, and answers to older searches are dropped", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("b", 2), entry("a", 1)], "1"));
  list.search("be");
  await vi.advanceTimersByTimeAsync(100);
  list.search("bee");
  expect(asked).toHaveLength(1);
  expect(list.getSnapshot()).toMatchObject({ q: "bee", loading: true });
  await vi.advanceTimersByTimeAsync(200);
  const first = request(-1);
  expect(first.query.q).toBe("bee");
  list.search("bees");
  await vi.advanceTimersByTimeAsync(200);
  await request(-1).answer(page([entry("x", 1)], "1"));
  await first.answer(page([entry("y", 1)]));
  expect(ids(list)).toEqual(["x"]);
  expect(list.getSnapshot().loading).toBe(false);
});

test("an older answer does not replace a newer one", async () => {
  const { list } = watched();
  const slow = request(-1);
  void list.refresh();
  await request(-1).answer(page([entry("new", 2)]));
  await slow.answer(page([entry("old", 1)]));
  expect(ids(list)).toEqual(["new"]);
});

test("a rename is shown at once and survives an older answer", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("a", 1)]));
  void list.refresh();
  const before = request(-1);
  const done = list.rename("a", "Bees");
  expect(list.getSnapshot().entries[0]?.title).toBe("Bees");
  const sent = request(-1);
  expect(sent).toMatchObject({ method: "PATCH", path: "/sessions/a", body: { title: "Bees" } });
  await before.answer(page([entry("a", 1)]));
  expect(list.getSnapshot().entries[0]?.title).toBe("Bees");
  await sent.answer(entry("a", 1, { title: "Bees" }));
  await done;
  expect(list.getSnapshot().entries[0]?.title).toBe("Bees");
});

test("a refused rename is reverted with the reason", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("a", 1)]));
  const done = expect(list.rename("a", "Bees")).rejects.toThrow("no 422");
  await request(-1).answer(422);
  await done;
  expect(list.getSnapshot()).toMatchObject({ entries: [{ title: "About a" }], error: "no 422" });
});

test("a deletion is shown at once and reverted if the server cannot be reached", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("b", 2), entry("a", 1)]));
  const done = expect(list.remove("a")).rejects.toThrow("cannot be reached");
  expect(ids(list)).toEqual(["b"]);
  await request(-1).answer(new TypeError("network"));
  await done;
  expect(ids(list)).toEqual(["b", "a"]);
  writeStored("draft.a", "half a question");
  const again = list.remove("a");
  expect(readStored("draft.a", "")).toBe("half a question");
  await request(-1).answer(404);
  await again;
  expect(ids(list)).toEqual(["b"]);
  expect(readStored("draft.a", "")).toBe("");
});

test("an error keeps the entries and is cleared by the next answer", async () => {
  const { list } = watched();
  await request(-1).answer(page([entry("a", 1)]));
  await vi.advanceTimersByTimeAsync(4_000);
  await request(-1).answer(new TypeError("network"));
  expect(list.getSnapshot().error).toBe("The server cannot be reached.");
  expect(ids(list)).toEqual(["a"]);
  await vi.advanceTimersByTimeAsync(4_000);
  await request(-1).answer(page([entry("a", 1)]));
  expect(list.getSnapshot().error).toBe(null);
});
