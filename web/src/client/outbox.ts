/**
 * The outbox: messages of the user that have not started a run yet. They survive a reload and are sent again after each
 * reconnect; the server starts only one run for each `request_id`.
 *
 * Each message has its own storage key, so that two tabs of a session do not overwrite each other's messages.
 */

import type { RunValues } from "../form/agentFields";
import type { SessionView } from "../log/viewModel";
import { outboxKeys, readStored, writeStored } from "./browserStorage";

export interface OutboxMessage {
  readonly requestId: string;
  /** The displayed message. */
  readonly text: string;
  /** What the user has filled into the agent's form. */
  readonly values?: RunValues;
  /** Whether `text` is only a description of the values, because the user has typed no message. */
  readonly isForm?: boolean;
  readonly ifBusy: "wait" | "cancel";
  readonly at: number;
  /** The server's reason for refusing the message; null if it was not refused. Only `retry` sends it again. */
  readonly error: string | null;
  /** The id of the run that the server created for the message; null until the server confirms it. */
  readonly runId: string | null;
}

/** Tolerance between the server's and this machine's clock, in ms. */
const CLOCK_TOLERANCE = 5000;

/** Prefix of the storage keys of a session's messages. */
export const outboxKeyPrefix = (sessionId: string) => `outbox.${sessionId}.`;

export function loadOutbox(sessionId: string): readonly OutboxMessage[] {
  const all = outboxKeys(sessionId).map((key) => readStored<OutboxMessage | null>(key, null));
  return all.filter((one) => one !== null).sort((one, other) => one.at - other.at);
}

export function isInOutbox(sessionId: string, one: OutboxMessage): boolean {
  return readStored<OutboxMessage | null>(outboxKeyPrefix(sessionId) + one.requestId, null) !== null;
}

/** Stores what has changed between two lists of messages. A message that another tab removed is not stored again. */
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
 * Returns the messages whose runs have not started.
 *
 * A run's first record may arrive before the server names the run of a message. Then a new run with the same text
 * that started after the message counts as its run, while an older run with the same text does not. `skew` is how far
 * this machine's clock is ahead of the server's, in ms.
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
