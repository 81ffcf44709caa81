import { createContext, useState } from "react";
import type { SessionStore } from "../client/session";
import { readStored, writeStored } from "../client/storage";
import { Store } from "../client/store";
import type { Item, RunView } from "../log/view";
import { useRequiredContext } from "../ui/hooks";

const KEY = "folds";
const MAX_STORED = 300;

/** A decision about an approval that the user has not sent yet. */
interface DecisionDraft {
  readonly mode: "ask" | "edit" | "reject";
  /** The edited arguments as JSON. */
  readonly edited: string;
  readonly reason: string;
}

/**
 * What the user expanded, collapsed and typed in conversations.
 *
 * Rows of a virtual list unmount when they are out of sight, so this state lives outside of them.
 */
export class ChatState {
  /** Whether the steps of a run are expanded, by run, where the user chose. The browser keeps the newest choices. */
  readonly expandedRuns = new Store<ReadonlyMap<string, boolean>>(new Map(readStored<[string, boolean][]>(KEY, [])));
  /** Whether a row is expanded, by its key, where the user chose. */
  readonly expandedRows = new Map<string, boolean>();
  /** By approval id. */
  readonly decisionDrafts = new Map<string, DecisionDraft>();

  setExpanded(runs: readonly RunView[], isExpanded: boolean): void {
    const choices = new Map(this.expandedRuns.getSnapshot());
    for (const { runId } of runs) {
      choices.delete(runId); // to become the newest
      choices.set(runId, isExpanded);
    }
    writeStored(KEY, [...choices].slice(-MAX_STORED));
    this.expandedRuns.set(choices);
  }
}

/** What the rows of a chat need besides their own item. */
export interface ChatValue {
  readonly store: SessionStore;
  readonly state: ChatState;
  /** Approvals whose decision is being sent. */
  readonly deciding: ReadonlySet<string>;
  /** Key of the item in the address. */
  readonly focus: string | null;
  readonly searchTerms: readonly string[];
  /** Shows an item in the conversation; without one the beginning of its run. */
  select(run: RunView, item: Item | null): void;
}

export const ChatContext = createContext<ChatValue | null>(null);

export const useChat = () => useRequiredContext(ChatContext);

/** State of a row by its key in `kept`, which outlives the row. */
function useKeptState<T>(kept: Map<string, T>, key: string): [T | undefined, (value: T) => void] {
  const [value, setValue] = useState(() => kept.get(key));
  const change = (next: T) => {
    kept.set(key, next);
    setValue(next);
  };
  return [value, change];
}

/** Whether a row is expanded: the user's choice, or `initial` until there is one. */
export function useExpanded(key: string, initial: boolean): [boolean, (isExpanded: boolean) => void] {
  const [choice, choose] = useKeptState(useChat().state.expandedRows, key);
  return [choice ?? initial, choose];
}

export const NO_DRAFT: DecisionDraft = { mode: "ask", edited: "", reason: "" };

export function useDecisionDraft(approvalId: string): [DecisionDraft, (change: Partial<DecisionDraft>) => void] {
  const [draft = NO_DRAFT, setDraft] = useKeptState(useChat().state.decisionDrafts, approvalId);
  return [draft, (change) => setDraft({ ...draft, ...change })];
}
