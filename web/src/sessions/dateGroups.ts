/** Groups sessions by the date of their last activity. Pure. */

import type { SessionEntry } from "../client/api";

export type ListRow =
  | { readonly kind: "heading"; readonly title: string }
  | { readonly kind: "session"; readonly entry: SessionEntry };

const DAY = 86_400_000;

/** The rows of the list: entries, with a heading before each group. Entries must be ordered newest first. */
export function grouped(entries: readonly SessionEntry[], today: number): ListRow[] {
  const rows: ListRow[] = [];
  let last = "";
  for (const entry of entries) {
    const title = groupOf(entry.active_at, today);
    if (title !== last) rows.push({ kind: "heading", title });
    last = title;
    rows.push({ kind: "session", entry });
  }
  return rows;
}

/** The heading of the group of a time, e.g. "Yesterday". `today` is the start of the current day. */
export function groupOf(at: number, today: number): string {
  if (at >= today) return "Today";
  if (at >= startOfDay(today - DAY / 2)) return "Yesterday";
  if (at >= startOfDay(today - 6.5 * DAY)) return "Previous 7 days";
  const then = new Date(at);
  const year = then.getFullYear() === new Date(today).getFullYear() ? {} : ({ year: "numeric" } as const);
  return then.toLocaleDateString("en", { month: "long", ...year });
}

export function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}
