import { createContext, type ReactNode, useMemo, useState } from "react";
import { createSession } from "../client/useSession";
import type { Item, RunView } from "../log/view";
import { useRequiredContext } from "../ui/hooks";
import { navigate, type Route, useRoute } from "./route";
import { useSettings } from "./SettingsContext";

/** The address of the page, and the ways to change it. */
export interface Navigation {
  readonly route: Route;
  openSession(sessionId: string): void;
  /** Shows the start page. */
  newSession(): void;
  /** Creates a session with its first message, for the agent of new conversations or for `agent`. */
  startSession(text: string, agent?: string): void;
  /** Leaves a session that was deleted. */
  leaveSession(sessionId: string): void;
  /** Puts a run, and an item of it, into the address. */
  select(run: RunView, item?: Item | null): void;
  clearSelection(): void;
  /** The list of sessions on narrow screens. */
  readonly isDrawerOpen: boolean;
  setDrawerOpen(isOpen: boolean): void;
}

export const NavigationContext = createContext<Navigation | null>(null);

export const useNavigation = () => useRequiredContext(NavigationContext);

export function NavigationProvider({ children }: { children: ReactNode }) {
  const route = useRoute();
  const agentName = useSettings().agent?.name;
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
      startSession: (text, agent = agentName) => {
        if (agent !== undefined) navigate({ sessionId: createSession(text, agent) });
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
