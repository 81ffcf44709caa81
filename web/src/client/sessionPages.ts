/** How pages of sessions, last active first, become one list. Pure. */

import type { SessionEntry, SessionPage } from "../wire/api";

/**
 * The list after its head was read again. What lies behind the head stays as it was (`whole` is false then); what should
 * have been in the head and is not there is gone.
 */
export function applied(
  old: readonly SessionEntry[],
  page: SessionPage,
): { entries: readonly SessionEntry[]; whole: boolean } {
  const last = page.sessions.at(-1);
  if (page.next === null || last === undefined) return { entries: same(old, page.sessions), whole: true };
  const head = new Set(page.sessions.map((entry) => entry.session_id));
  const tail = old.filter((entry) => !head.has(entry.session_id) && entry.active_at <= last.active_at);
  return { entries: same(old, [...page.sessions, ...tail]), whole: tail.length === 0 };
}

/** The list with a further page at its end. */
export function joined(old: readonly SessionEntry[], more: readonly SessionEntry[]): readonly SessionEntry[] {
  const known = new Set(old.map((entry) => entry.session_id));
  return [...old, ...more.filter((entry) => !known.has(entry.session_id))];
}

/** The new list, with the old object for each entry that did not change, and the old list if none did. */
export function same(old: readonly SessionEntry[], fresh: readonly SessionEntry[]): readonly SessionEntry[] {
  const known = new Map(old.map((entry) => [entry.session_id, entry]));
  const kept = fresh.map((entry) => {
    const before = known.get(entry.session_id);
    return before !== undefined && equal(before, entry) ? before : entry;
  });
  return kept.length === old.length && kept.every((entry, at) => entry === old[at]) ? old : kept;
}

function equal(one: SessionEntry, other: SessionEntry): boolean {
  return (Object.keys(other) as (keyof SessionEntry)[]).every((key) => one[key] === other[key]);
}
