/** What the right side can show, and what of it a run is busy with. Pure. */

import { codeOf } from "../log/code";
import type { RunView } from "../log/view";

export type Pane = "code" | "terminal" | "timeline" | "files";

/** Code while code is written or runs, of whatever tool; the terminal while a tool prints; null if it does neither. */
export function activePane(run: RunView): Pane | null {
  if (run.endedAt !== null) return null;
  const piece = run.terminal[run.terminal.length - 1];
  let pane: Pane | null = null;
  for (const [name, index] of run.open) {
    const item = name.startsWith("tool ") ? run.items[index] : undefined;
    if (item?.kind !== "tool") continue;
    if (piece?.item === index && piece.kind !== "call") pane = "terminal";
    else if (codeOf(item) !== null) pane = "code";
  }
  return pane;
}
