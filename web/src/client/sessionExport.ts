/** Reads a session's log and saves it as a file; one export at a time, with progress. */

import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { toMarkdown } from "../sessions/markdownExport";
import { download, fileName } from "../ui/download";
import type { LogRecord } from "../wire/events";
import { ApiError, api, errorMessage, serverUrl } from "./api";
import { Store } from "./store";

const MAX_ATTEMPTS = 5;

interface Chunk {
  readonly lines: readonly string[];
  /** Fraction of the log that has arrived, 0 to 1. */
  readonly progress: number;
}

/**
 * Yields the log up to its current end, as one JSON line for each record.
 *
 * The stream of a session does not end, so reading stops at the record that is the newest at the start. A lost
 * connection is resumed.
 */
async function* recordLines(sessionId: string, signal: AbortSignal): AsyncGenerator<Chunk> {
  const { last_seq: last } = await api.session(sessionId, signal);
  let seq = 0;
  for (let attempts = 0; seq < last; attempts += 1) {
    const before = seq;
    for await (const data of frames(sessionId, seq, signal)) {
      const lines: string[] = [];
      for (const line of data) {
        const frame = JSON.parse(line) as { seq?: number; gap?: { to: number } };
        if (seq >= last) break;
        if (frame.seq !== undefined) lines.push(line);
        seq = frame.seq ?? frame.gap?.to ?? seq;
      }
      yield { lines, progress: Math.min(1, seq / last) };
      if (seq >= last) return;
    }
    if (seq > before) attempts = 0;
    if (attempts >= MAX_ATTEMPTS)
      throw new ApiError("The server ended the stream before the end of the log.", "unreachable", 0);
  }
}

/** Yields the `data:` lines of a session's event stream, in batches as they arrive. */
async function* frames(sessionId: string, after: number, signal: AbortSignal): AsyncGenerator<string[]> {
  const stop = new AbortController();
  const path = `sessions/${encodeURIComponent(sessionId)}/stream?format=records&after=${after}`;
  const response = await fetch(serverUrl(path), { signal: AbortSignal.any([signal, stop.signal]) });
  if (!response.ok || response.body === null) throw new ApiError(`The server answered ${response.status}.`, "", 0);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        signal.throwIfAborted();
        if (error instanceof Error && error.name === "AbortError") throw error;
        return { done: true, value: undefined } as const;
      });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
      if (data.length > 0) yield data;
    }
  } finally {
    // Closes the stream, so that the server stops sending.
    stop.abort();
  }
}

type ExportFormat = "jsonl" | "markdown";

interface ExportState {
  readonly title: string;
  /** Fraction that is done, 0 to 1. */
  readonly progress: number;
  readonly error: string | null;
}

/** Exports sessions, one at a time. Its value is the state of the current export; null if there is none. */
export class SessionExport extends Store<ExportState | null> {
  private abort = new AbortController();

  constructor() {
    super(null);
  }

  readonly start = async (sessionId: string, title: string, format: ExportFormat): Promise<void> => {
    this.cancel();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.set({ title, progress: 0, error: null });
    try {
      const lines: string[] = [];
      for await (const chunk of recordLines(sessionId, signal)) {
        for (const line of chunk.lines) lines.push(line);
        if (signal.aborted) return;
        this.set({ title, progress: chunk.progress, error: null });
      }
      await save(lines, title, format, signal);
      if (!signal.aborted) this.set(null);
    } catch (error) {
      if (signal.aborted) return;
      this.set({ title, progress: 0, error: errorMessage(error) });
    }
  };

  /** Stops the running export, or removes the error of a failed one. */
  readonly cancel = (): void => {
    this.abort.abort();
    this.set(null);
  };
}

async function save(lines: readonly string[], title: string, format: ExportFormat, signal: AbortSignal): Promise<void> {
  if (format === "jsonl") {
    download(fileName(title, "jsonl"), [lines.map((line) => `${line}\n`).join("")], "application/jsonl");
    return;
  }
  const records = lines.map((line) => JSON.parse(line) as LogRecord);
  const runs = await Promise.all(reduce(EMPTY, records).runs.map((run) => withFullTexts(run, signal)));
  if (!signal.aborted) download(fileName(title, "md"), [toMarkdown(title, runs)], "text/markdown");
}

/** Returns the run with its complete question and answer, which it fetches if the log truncates them. */
async function withFullTexts(run: RunView, signal: AbortSignal): Promise<RunView> {
  const input = run.inputTruncation?.url ? await api.text(run.inputTruncation.url, signal) : run.input;
  const truncation = run.answer?.truncation;
  if (run.answer === null || !truncation?.url) return { ...run, input };
  const text = await api.text(truncation.url, signal);
  return { ...run, input, answer: { ...run.answer, content: text } };
}
