/**
 * Messages that the user sent and that are no runs yet. They outlive a reload, and are sent again after every
 * reconnect: the server knows a `request_id` and never begins a second run for it.
 *
 * Each has a key of its own, so that two tabs of a session never overwrite what the other one sent or withdrew.
 */

import type { SessionView } from "../log/view";
import { readStored, storedKeys, writeStored } from "./storage";

export interface OutboxMessage {
  readonly requestId: string;
  readonly text: string;
  readonly ifBusy: "wait" | "cancel";
  readonly at: number;
  /** Why the server refused it; such a message is not sent again by itself. */
  readonly error: string | null;
  /** Its run, once the server has named it. */
  readonly runId: string | null;
}

/** The server counts a message's time by its own clock, and both are only nearly right. */
const CLOCK_TOLERANCE = 5000;

/** How the keys of a session's messages begin. */
export const outboxKeyPrefix = (sessionId: string) => `outbox.${sessionId}.`;

export function loadOutbox(sessionId: string): readonly OutboxMessage[] {
  const beginning = outboxKeyPrefix(sessionId);
  // Ids of messages have no dots, those of sessions may: `a.` is the beginning of `a.b.` too.
  const keys = storedKeys(beginning).filter((key) => !key.slice(beginning.length).includes("."));
  const all = keys.map((key) => readStored<OutboxMessage | null>(key, null)).filter((one) => one !== null);
  return all.sort((a, b) => a.at - b.at);
}

export function isInOutbox(sessionId: string, one: OutboxMessage): boolean {
  return readStored<OutboxMessage | null>(outboxKeyPrefix(sessionId) + one.requestId, null) !== null;
}

/** Note what has changed. A message that another tab has taken away meanwhile does not come back by that. */
export function saveOutbox(sessionId: string, before: readonly OutboxMessage[], after: readonly OutboxMessage[]): void {
  const old = new Map(before.map((one) => [one.requestId, one]));
  for (const one of after) {
    const known = old.get(one.requestId);
    old.delete(one.requestId);
    if (known === undefined || (known !== one && isInOutbox(sessionId, one)))
      writeStored(outboxKeyPrefix(sessionId) + one.requestId, one);
  }
  for (const requestId of old.keys()) writeStored(outboxKeyPrefix(sessionId) + requestId, null);
}

/**
 * Without those that have become runs. The run's first Record may come before the server's word which run it is: then
 * the question itself tells, so that no message is ever seen twice. Only of a run that is new and that began after the
 * message was written: people ask the same thing again. `skew` is how far our clock is ahead of the server's.
 */
export function withoutStarted(
  pending: readonly OutboxMessage[],
  before: SessionView,
  after: SessionView,
  skew: number,
): readonly OutboxMessage[] {
  if (pending.length === 0) return pending;
  const known = new Set(before.runs.map((run) => run.runId));
  const all = new Set(after.runs.map((run) => run.runId));
  const named = new Set(pending.map((one) => one.runId));
  const fresh = after.runs.filter((run) => !known.has(run.runId) && !named.has(run.runId));
  const left = pending.filter((one) => {
    if (one.runId !== null) return !all.has(one.runId);
    if (one.error !== null) return true;
    const earliest = one.at - skew - CLOCK_TOLERANCE;
    const place = fresh.findIndex((run) => run.input === one.text && run.startedAt >= earliest);
    if (place >= 0) fresh.splice(place, 1);
    return place < 0;
  });
  return left.length === pending.length ? pending : left;
}
