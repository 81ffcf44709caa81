/** Reads the server's golden transcripts (recorded or hand-written event logs) as records, for tests. */

import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { AnyEvent, LogRecord } from "../wire/events";

const TESTS = resolve(import.meta.dirname, "../../../tests");
const DIALECTS = join(TESTS, "dialects/golden");
const SOURCES = join(TESTS, "sources/golden");
const BEGIN = 1_700_000_000_000;

export interface Transcript {
  readonly name: string;
  readonly records: readonly LogRecord[];
}

/** Golden transcripts that are written by hand, at least one for each kind of event. */
export function dialectTranscripts(): Transcript[] {
  return namesIn(DIALECTS).map((name) => ({ name, records: transcript(name) }));
}

/** Golden transcripts that are recorded from real frameworks. */
export function sourceTranscripts(): Transcript[] {
  return readdirSync(SOURCES)
    .sort()
    .flatMap((source) =>
      namesIn(join(SOURCES, source)).map((name) => ({
        name: `${source}/${name}`,
        records: recordsOf(lines(join(SOURCES, source, `${name}.jsonl`)).map(event)),
      })),
    );
}

export function transcript(name: string): LogRecord[] {
  return lines(join(DIALECTS, `${name}.jsonl`)).map((line) => JSON.parse(line) as LogRecord);
}

/** The Web API v2 messages of a golden transcript. */
export function messagesOf(name: string): V2Message[] {
  return lines(join(DIALECTS, `${name}.v2.sse`))
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice("data: ".length)) as V2Message);
}

/** The frames of a golden transcript in the format `typed`. */
export function framesOf(name: string): TypedFrame[] {
  return lines(join(DIALECTS, `${name}.typed.sse`))
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice("data: ".length)) as TypedFrame);
}

export interface TypedFrame {
  readonly type: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface V2Message {
  readonly content: string;
  readonly metadata: {
    readonly component: string;
    readonly message_type: string;
    readonly status: string;
    readonly tool_id?: string;
    readonly code?: string;
    readonly is_delta?: boolean;
    readonly streaming?: boolean;
  };
}

/** Wraps events in the records of one run. */
export function recordsOf(events: readonly AnyEvent[], runId = "run_0", after = 0): LogRecord[] {
  return events.map((one, index) => ({
    seq: after + index + 1,
    run_id: runId,
    at: BEGIN + (after + index + 1) * 3,
    event: one,
  }));
}

/** Parses an event of a source's golden file, in which "…" stands for values that change from run to run. */
function event(line: string): AnyEvent {
  return JSON.parse(line, (key, value: unknown) =>
    value === "…" && /_ms$|_tokens$|_at$|^size$/.test(key) ? 7 : value,
  ) as AnyEvent;
}

function namesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".jsonl"))
    .map((file) => basename(file, ".jsonl"))
    .sort();
}

function lines(path: string): string[] {
  return readFileSync(path, "utf8").split("\n").filter(Boolean);
}
