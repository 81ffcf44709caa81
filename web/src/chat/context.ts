import { createContext, useContext } from "react";
import type { SessionStore } from "../client/session";
import type { Item, RunView } from "../log/view";

/** What rows of the chat need beside what they show. */
export interface ChatContext {
  readonly store: SessionStore;
  readonly deciding: ReadonlySet<string>;
  /** The item that a link or the timeline points at. */
  readonly focus: string | null;
  /** Words that a search looks for. */
  readonly words: readonly string[];
  /** Show an item in its place; without one the beginning of its run. */
  pick(run: RunView, item: Item | null): void;
}

const Context = createContext<ChatContext | null>(null);

export const ChatProvider = Context.Provider;

export function useChat(): ChatContext {
  const chat = useContext(Context);
  if (chat === null) throw new Error("rows stand in a chat");
  return chat;
}
