// @vitest-environment jsdom

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { transcript } from "../testing/goldenTranscripts";
import type { LogRecord } from "../wire/events";
import { SessionExport } from "./sessionExport";

const RECORDS = transcript("one_tool");
let saved: { name: string; text: Promise<string> }[];
let streams: ReadableStream<Uint8Array>[];
let asked: string[];

beforeEach(() => {
  saved = [];
  streams = [];
  asked = [];
  const blobs = new Map<string, Blob>();
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    const { pathname, search } = new URL(url);
    asked.push(pathname + search);
    if (pathname !== "/sessions/s1/stream") return Response.json({ last_seq: RECORDS.at(-1)?.seq });
    const stream = streams.shift();
    if (stream === undefined) throw new TypeError("no stream");
    return new Response(stream.pipeThrough(new TransformStream(), init.signal ? { signal: init.signal } : {}));
  });
  URL.createObjectURL = (blob) => {
    const url = `blob:${blobs.size}`;
    if (blob instanceof Blob) blobs.set(url, blob);
    return url;
  };
  URL.revokeObjectURL = () => {};
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    const blob = blobs.get(this.href);
    if (blob) saved.push({ name: this.download, text: textOf(blob) });
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
});

function textOf(blob: Blob): Promise<string> {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsText(blob);
  });
}

function sent(records: readonly LogRecord[], ends = false): ReadableStream<Uint8Array> {
  const text = records.map((one) => `id: ${one.seq}\ndata: ${JSON.stringify(one)}\n\n`).join("");
  const bytes = new TextEncoder().encode(`retry: 1000\n\n: ping\n\n${text}`);
  return new ReadableStream({
    start(sink) {
      // In pieces of any length, as a network delivers them.
      for (let at = 0; at < bytes.length; at += 37) sink.enqueue(bytes.slice(at, at + 37));
      if (ends) sink.close();
    },
  });
}

test("the log is exported as JSON lines, and the endless stream is left at its end", async () => {
  streams = [sent(RECORDS)];
  const saving = new SessionExport();
  const shares: number[] = [];
  saving.subscribe(() => shares.push(saving.getSnapshot()?.progress ?? -1));
  await saving.start("s1", "My: log", "jsonl");
  const [file] = saved;
  expect(file?.name).toBe("My log.jsonl");
  expect(
    (await file?.text)
      ?.trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual(RECORDS);
  expect(saving.getSnapshot()).toBe(null);
  expect(shares).toContain(1);
  expect(shares).toEqual([...shares.slice(0, -1).sort((one, other) => one - other), -1]);
});

test("a broken stream is resumed at the last record", async () => {
  const half = Math.floor(RECORDS.length / 2);
  streams = [sent(RECORDS.slice(0, half), true), sent(RECORDS.slice(half))];
  await new SessionExport().start("s1", "t", "jsonl");
  expect((await saved[0]?.text)?.trim().split("\n")).toHaveLength(RECORDS.length);
  expect(asked.at(-1)).toContain(`after=${RECORDS[half - 1]?.seq}`);
});

test("a session is exported as Markdown", async () => {
  streams = [sent(RECORDS)];
  await new SessionExport().start("s1", "Notes", "markdown");
  expect(saved[0]?.name).toBe("Notes.md");
  expect(await saved[0]?.text).toMatch(/^# Notes\n\n## Question\n/);
});

test("a failed export reports its error and saves nothing", async () => {
  const saving = new SessionExport();
  await saving.start("s1", "t", "jsonl");
  expect(saving.getSnapshot()?.error).not.toBe(null);
  saving.cancel();
  expect(saving.getSnapshot()).toBe(null);
  expect(saved).toEqual([]);
});

test("a cancelled export saves nothing", async () => {
  streams = [sent(RECORDS.slice(0, 2))];
  const saving = new SessionExport();
  const begun = new Promise<void>((resolve) => {
    saving.subscribe(() => (saving.getSnapshot()?.progress ?? 0) > 0 && resolve());
  });
  const done = saving.start("s1", "t", "jsonl");
  await begun;
  saving.cancel();
  await done;
  expect(saved).toEqual([]);
  expect(saving.getSnapshot()).toBe(null);
});
