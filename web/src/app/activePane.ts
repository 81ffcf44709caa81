/** Which pane shows what a run does at the moment. Pure. */

import { codeOf } from "../log/code";
import type { RunView } from "../log/view";

export type Pane = "code" | "terminal" | "timeline" | "files";

/** The code pane while code is written or runs, the terminal while a tool prints, otherwise null. */
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
