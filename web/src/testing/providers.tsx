/** Providers of the page's contexts, for tests of components. */

import type { ReactNode } from "react";
import { vi } from "vitest";
import { type Account, AccountContext } from "../app/AccountContext";
import { type Agents, AgentsContext } from "../app/AgentsContext";
import { type Layout, LayoutContext } from "../app/LayoutContext";
import { type Navigation, NavigationContext } from "../app/NavigationContext";
import { Stores, StoresContext } from "../app/pageStores";
import { HOME } from "../app/route";
import { ChatContext, ChatState, type ChatValue } from "../chat/chatContext";

interface PageValues {
  readonly account?: Partial<Account>;
  readonly agents?: Partial<Agents>;
  readonly navigation?: Partial<Navigation>;
  readonly layout?: Partial<Layout>;
}

/** Wraps a component in all contexts of the page, with new stores and mock functions. */
export function TestPage({ children, account, agents, navigation, layout }: PageValues & { children: ReactNode }) {
  const allAccount: Account = { user: null, signOut: vi.fn(), signOutError: "", ...account };
  const allAgents: Agents = {
    agents: [],
    version: "",
    agentsError: null,
    agent: undefined,
    chooseAgent: vi.fn(),
    ...agents,
  };
  const allNavigation: Navigation = {
    route: HOME,
    openSession: vi.fn(),
    newSession: vi.fn(),
    startSession: vi.fn(),
    leaveSession: vi.fn(),
    select: vi.fn(),
    clearSelection: vi.fn(),
    isDrawerOpen: false,
    setDrawerOpen: vi.fn(),
    ...navigation,
  };
  const allLayout = { isNarrow: false, openDialogs: new Set(), setDialogOpen: vi.fn(), ...layout } as unknown as Layout;
  return (
    <AccountContext value={allAccount}>
      <AgentsContext value={allAgents}>
        <NavigationContext value={allNavigation}>
          <LayoutContext value={allLayout}>{children}</LayoutContext>
        </NavigationContext>
      </AgentsContext>
    </AccountContext>
  );
}

export function TestStores({ stores = new Stores(), children }: { stores?: Stores; children: ReactNode }) {
  return <StoresContext value={stores}>{children}</StoresContext>;
}

/** Wraps a row in the context of the chat. */
export function TestChat({ children, ...value }: Partial<ChatValue> & { children: ReactNode }) {
  const chat: ChatValue = {
    store: { sessionId: "s" } as ChatValue["store"],
    state: new ChatState(),
    deciding: new Set(),
    focus: null,
    searchTerms: [],
    select: vi.fn(),
    ...value,
  };
  return <ChatContext value={chat}>{children}</ChatContext>;
}
