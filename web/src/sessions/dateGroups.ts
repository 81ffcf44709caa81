/** Groups sessions by the date of their last activity. Pure. */

import type { SessionEntry } from "../client/api";

export type ListRow =
  | { readonly kind: "heading"; readonly title: string }
  | { readonly kind: "session"; readonly entry: SessionEntry };

const DAY_MS = 86_400_000;

/** Returns the rows of the session list: the entries, newest first, with a heading before each group. */
export function rowsByDate(entries: readonly SessionEntry[], today: number): ListRow[] {
  const rows: ListRow[] = [];
  let last = "";
  for (const entry of entries) {
    const title = groupTitle(entry.active_at, today);
    if (title !== last) rows.push({ kind: "heading", title });
    last = title;
    rows.push({ kind: "session", entry });
  }
  return rows;
}

/** Returns the heading for sessions of this time, e.g. "Yesterday". `today` is the start of the current day. */
export function groupTitle(at: number, today: number): string {
  if (at >= today) return "Today";
  if (at >= startOfDay(today - DAY_MS / 2)) return "Yesterday";
  if (at >= startOfDay(today - 6.5 * DAY_MS)) return "Previous 7 days";
  const then = new Date(at);
  const year = then.getFullYear() === new Date(today).getFullYear() ? {} : ({ year: "numeric" } as const);
  return then.toLocaleDateString("en", { month: "long", ...year });
}

export function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}
