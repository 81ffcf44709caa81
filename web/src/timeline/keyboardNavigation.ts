/** Keyboard navigation between rows of the timeline. Pure. `timelineShortcuts.ts` lists the keys for the user. */

import type { TimelineRow } from "./layout";

const PAGE_ROWS = 10;

/** Index of the row that a key moves to; null if it is not a navigation key. */
export function nextRow(rows: readonly TimelineRow[], from: number, key: string): number | null {
  const last = rows.length - 1;
  const here = rows[from];
  if (here === undefined) return null;
  switch (key) {
    case "ArrowDown":
      return Math.min(last, from + 1);
    case "ArrowUp":
      return Math.max(0, from - 1);
    case "PageDown":
      return Math.min(last, from + PAGE_ROWS);
    case "PageUp":
      return Math.max(0, from - PAGE_ROWS);
    case "Home":
      return 0;
    case "End":
      return last;
    case "ArrowRight":
      return (rows[from + 1]?.depth ?? 0) > here.depth ? from + 1 : from;
    case "ArrowLeft": {
      for (let place = from - 1; place >= 0; place--) if ((rows[place]?.depth ?? 0) < here.depth) return place;
      return from;
    }
    default:
      return null;
  }
}
