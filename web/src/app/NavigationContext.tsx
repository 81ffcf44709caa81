import { createContext, type ReactNode, useMemo, useState } from "react";
import { createSession } from "../client/useSession";
import type { RunValues } from "../form/agentFields";
import type { Item, RunView } from "../log/viewModel";
import { useRequiredContext } from "../ui/hooks";
import { useAgents } from "./AgentsContext";
import { navigate, type Route, useRoute } from "./route";

/** The current route of the page, and functions that change it. */
export interface Navigation {
  readonly route: Route;
  openSession(sessionId: string): void;
  /** Shows the start page. */
  newSession(): void;
  /** Creates a session with its first message, for `agent` or by default for the chosen agent. */
  startSession(text: string, agent?: string, values?: RunValues): void;
  /** Shows the start page if this deleted session is the current one. */
  leaveSession(sessionId: string): void;
  /** Puts a run and optionally one of its items into the URL. */
  select(run: RunView, item?: Item | null): void;
  clearSelection(): void;
  /** Whether the list of sessions is open on a narrow screen. */
  readonly isDrawerOpen: boolean;
  setDrawerOpen(isOpen: boolean): void;
}

export const NavigationContext = createContext<Navigation | null>(null);

export const useNavigation = () => useRequiredContext(NavigationContext);

export function NavigationProvider({ children }: { children: ReactNode }) {
  const route = useRoute();
  const agentName = useAgents().agent?.name;
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const navigation = useMemo<Navigation>(() => {
    const { sessionId } = route;
    const replace = { replace: true };
    const openSession = (id: string | null) => {
      setDrawerOpen(false);
      navigate({ sessionId: id });
    };
    return {
      route,
      openSession,
      newSession: () => openSession(null),
      startSession: (text, agent = agentName, values = {}) => {
        if (agent !== undefined) navigate({ sessionId: createSession(text, agent, values) });
      },
      leaveSession: (id) => id === sessionId && navigate({}, replace),
      select: (run, item = null) => navigate({ sessionId, runId: run.runId, item: item?.index ?? null }, replace),
      clearSelection: () => navigate({ sessionId }, replace),
      isDrawerOpen,
      setDrawerOpen,
    };
  }, [route, agentName, isDrawerOpen]);
  return <NavigationContext value={navigation}>{children}</NavigationContext>;
}
