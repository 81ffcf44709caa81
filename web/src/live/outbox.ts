/**
 * Messages that the user sent and that are no runs yet. They outlive a reload, and are sent again after every
 * reconnect: the server knows a `request_id` and never begins a second run for it.
 */

import type { SessionView } from "../log/view";
import { recall, remember } from "./storage";

export interface Pending {
  readonly requestId: string;
  readonly text: string;
  readonly ifBusy: "wait" | "cancel";
  readonly at: number;
  /** Why the server refused it; such a message is not sent again by itself. */
  readonly error: string | null;
  /** Its run, once the server has named it. */
  readonly runId: string | null;
}

const keyOf = (sessionId: string) => `outbox.${sessionId}`;

export function kept(sessionId: string): readonly Pending[] {
  return recall<readonly Pending[]>(keyOf(sessionId), []);
}

export function keep(sessionId: string, pending: readonly Pending[]): void {
  remember(keyOf(sessionId), pending.length === 0 ? null : pending);
}

/**
 * Without those that have become runs. The run's first Record may come before the server's word which run it is: then
 * the question itself tells, so that no message is ever seen twice.
 */
export function unseen(pending: readonly Pending[], before: SessionView, after: SessionView): readonly Pending[] {
  if (pending.length === 0) return pending;
  const known = new Set(before.runs.map((run) => run.runId));
  const all = new Set(after.runs.map((run) => run.runId));
  const fresh = after.runs.filter((run) => !known.has(run.runId)).map((run) => run.input);
  const left = pending.filter((one) => {
    if (one.runId !== null) return !all.has(one.runId);
    const place = fresh.indexOf(one.text);
    if (place >= 0) fresh.splice(place, 1);
    return place < 0;
  });
  return left.length === pending.length ? pending : left;
}
