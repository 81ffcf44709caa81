import { useState } from "react";

/** A decision that is being made. */
export interface Draft {
  readonly mode: "ask" | "edit" | "reject";
  /** The arguments as they are being written. */
  readonly edited: string;
  readonly reason: string;
}

const NONE: Draft = { mode: "ask", edited: "", reason: "" };

/** A virtual list takes rows away and brings them back: what was typed in them must not be lost. */
const drafts = new Map<string, Draft>();

export function useDecisionDraft(approvalId: string): [Draft, (change: Partial<Draft>) => void] {
  const [draft, setDraft] = useState(() => drafts.get(approvalId) ?? NONE);
  const change = (more: Partial<Draft>) => {
    const next = { ...(drafts.get(approvalId) ?? NONE), ...more };
    if (next.mode === "ask") drafts.delete(approvalId);
    else drafts.set(approvalId, next);
    setDraft(next);
  };
  return [draft, change];
}
