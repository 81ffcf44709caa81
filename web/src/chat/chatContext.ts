import { createContext, useState } from "react";
import { readStored, writeStored } from "../client/browserStorage";
import type { SessionStore } from "../client/sessionStore";
import { Store } from "../client/store";
import type { Draft, FilledForm } from "../form/schemaFields";
import type { Item, RunView } from "../log/viewModel";
import { useRequiredContext } from "../ui/hooks";

const KEY = "folds";
const MAX_STORED = 300;

/** A decision about an approval that the user has not sent yet. */
interface DecisionDraft {
  readonly mode: "ask" | "edit" | "reject" | "answer";
  /** The edited arguments as JSON. */
  readonly edited: string;
  /** The edited arguments in the fields of their schema; null if they are edited as JSON. */
  readonly editedForm: FilledForm | null;
  readonly reason: string;
  /** What the user has typed into the fields of the answer; null before the first change. */
  readonly answer: Draft | null;
}

/**
 * What the user expanded, collapsed and typed in conversations.
 *
 * Rows of a virtual list unmount when they are out of sight, so this state lives outside of them.
 */
export class ChatState {
  /** Whether the user has expanded or collapsed the steps of a run, by run id. The browser stores the newest ones. */
  readonly expandedRuns = new Store<ReadonlyMap<string, boolean>>(new Map(readStored<[string, boolean][]>(KEY, [])));
  /** Whether the user has expanded or collapsed a row, by row key. */
  readonly expandedRows = new Map<string, boolean>();
  /** Unsent decisions, by approval id. */
  readonly decisionDrafts = new Map<string, DecisionDraft>();

  setExpanded(runs: readonly RunView[], isExpanded: boolean): void {
    const choices = new Map(this.expandedRuns.getSnapshot());
    for (const { runId } of runs) {
      choices.delete(runId); // so that `set` puts it at the end, as the newest
      choices.set(runId, isExpanded);
    }
    writeStored(KEY, [...choices].slice(-MAX_STORED));
    this.expandedRuns.set(choices);
  }
}

/** State and functions that all rows of a chat share. */
export interface ChatValue {
  readonly store: SessionStore;
  readonly state: ChatState;
  /** Approvals whose decision is being sent. */
  readonly deciding: ReadonlySet<string>;
  /** Key of the item that the URL names; null if it names none. */
  readonly focus: string | null;
  readonly searchTerms: readonly string[];
  /** Scrolls the conversation to an item, or to the beginning of the run if `item` is null. */
  select(run: RunView, item: Item | null): void;
}

export const ChatContext = createContext<ChatValue | null>(null);

export const useChat = () => useRequiredContext(ChatContext);

/** State of a row that survives unmounting, because it is stored in the map `kept` under the row's key. */
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

export const NO_DRAFT: DecisionDraft = { mode: "ask", edited: "", editedForm: null, reason: "", answer: null };

export function useDecisionDraft(approvalId: string): [DecisionDraft, (change: Partial<DecisionDraft>) => void] {
  const [draft = NO_DRAFT, setDraft] = useKeptState(useChat().state.decisionDrafts, approvalId);
  return [draft, (change) => setDraft({ ...draft, ...change })];
}
