import { createContext, type ReactNode, useCallback, useMemo, useState } from "react";
import { findAgent, useAgents } from "../client/agents";
import type { AgentInfo, CurrentUser } from "../client/api";
import { useCurrentUser } from "../client/auth";
import { useStoredState } from "../client/browserStorage";
import { useRequiredContext } from "../ui/hooks";
import { useStores } from "./stores";

/** The server's agents, the agent of new conversations, and the user. */
export interface Settings {
  readonly agents: readonly AgentInfo[];
  /** Version of the server; "" if it is not known. */
  readonly version: string;
  /** Error of the last attempt to load the agents; null after a success. */
  readonly agentsError: string | null;
  /** The agent of new conversations. */
  readonly agent: AgentInfo | undefined;
  readonly chooseAgent: (name: string) => void;
  /** The user of this browser's API key; null on a server that needs no key. */
  readonly user: CurrentUser | null;
  readonly signOut: () => void;
  readonly signOutError: string;
}

export const SettingsContext = createContext<Settings | null>(null);

export const useSettings = () => useRequiredContext(SettingsContext);

export function SettingsProvider({ children }: { children: ReactNode }) {
  const { auth } = useStores();
  const { agents, version, error } = useAgents();
  const user = useCurrentUser();
  const [name, chooseAgent] = useStoredState("agent", "");
  const [signOutError, setSignOutError] = useState("");
  const signOut = useCallback(() => {
    auth.logOut().catch((reason: Error) => setSignOutError(`Not signed out: ${reason.message}`));
  }, [auth]);
  const settings = useMemo<Settings>(
    () => ({
      agents,
      version,
      agentsError: error,
      agent: findAgent(agents, name),
      chooseAgent,
      user,
      signOut,
      signOutError,
    }),
    [agents, version, error, name, chooseAgent, user, signOut, signOutError],
  );
  return <SettingsContext value={settings}>{children}</SettingsContext>;
}
