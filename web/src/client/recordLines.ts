/** A session's log as text, one JSON line for each Record, as far as it goes now. */

import { ApiError, address, api } from "../wire/api";

const TRIES = 5;

export interface Portion {
  readonly lines: readonly string[];
  /** How much of the log has come, 0 to 1. */
  readonly share: number;
}

/**
 * The log up to where it ends at this moment. A session's stream never ends by itself, so it is left at that Record; a
 * connection that breaks is taken up again from there.
 */
export async function* recordLines(sessionId: string, signal: AbortSignal): AsyncGenerator<Portion> {
  const { last_seq: last } = await api.session(sessionId, signal);
  let seq = 0;
  for (let tries = 0; seq < last; tries += 1) {
    const before = seq;
    for await (const data of frames(sessionId, seq, signal)) {
      const lines: string[] = [];
      for (const line of data) {
        const frame = JSON.parse(line) as { seq?: number; gap?: { to: number } };
        if (seq >= last) break;
        if (frame.seq !== undefined) lines.push(line);
        seq = frame.seq ?? frame.gap?.to ?? seq;
      }
      yield { lines, share: Math.min(1, seq / last) };
      if (seq >= last) return;
    }
    if (seq > before) tries = 0;
    if (tries >= TRIES) throw new ApiError("The server breaks off in the middle of the log.", "unreachable", 0);
  }
}

/** The `data:` lines of a stream, as many at a time as came together. */
async function* frames(sessionId: string, after: number, signal: AbortSignal): AsyncGenerator<string[]> {
  const mine = new AbortController();
  const path = `sessions/${encodeURIComponent(sessionId)}/stream?format=records&after=${after}`;
  const response = await fetch(address(path), { signal: AbortSignal.any([signal, mine.signal]) });
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
    // Whoever reads has enough; the server need not send on.
    mine.abort();
  }
}
