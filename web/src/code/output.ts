/** How much of a call's output stands beside its code. Pure. */

import { textOf } from "../log/plainText";
import type { OutputPiece, ToolItem } from "../log/view";

export const MAX_PRINTED = 20_000;
export const MAX_RESULT = 4_000;

export interface Shown {
  readonly pieces: readonly OutputPiece[];
  /** Characters before them that are left out. */
  readonly before: number;
  readonly result: string;
  /** Characters of the result that are left out; null if the server keeps the rest, and nobody counted. */
  readonly after: number | null;
}

/** The end of what was printed, because it is live, and the beginning of what came back. */
export function shownOf(item: ToolItem): Shown {
  const pieces: OutputPiece[] = [];
  let room = MAX_PRINTED;
  let before = item.outputDropped;
  for (const piece of item.output.toReversed()) {
    const kept = room > 0 ? piece.text.slice(-room) : "";
    if (kept === piece.text) pieces.unshift(piece);
    else if (kept !== "") pieces.unshift({ ...piece, text: kept });
    before += piece.text.length - kept.length;
    room -= kept.length;
  }
  const whole = item.endedAt === null ? "" : textOf(item.result);
  const result = whole.slice(0, MAX_RESULT);
  return { pieces, before, result, after: item.resultCut ? null : whole.length - result.length };
}
