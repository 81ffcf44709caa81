/** Chooses the pane that fits what the agent of a run does now. Pure. */

import { codeOf } from "../log/codeArguments";
import { type RunView, runningTools } from "../log/viewModel";

export type Pane = "code" | "terminal" | "timeline" | "files";

/** Returns `code` while code is written or runs, `terminal` while a tool prints, otherwise null. */
export function activePane(run: RunView): Pane | null {
  const piece = run.terminal.at(-1);
  let pane: Pane | null = null;
  for (const tool of runningTools(run)) {
    if (piece?.item === tool.index && piece.kind !== "call") pane = "terminal";
    else if (codeOf(tool) !== null) pane = "code";
  }
  return pane;
}
