import { createContext, type ReactNode, useMemo } from "react";
import { findAgent, useAgentList } from "../client/agentList";
import type { AgentInfo } from "../client/api";
import { useStoredState } from "../client/browserStorage";
import { useRequiredContext } from "../ui/hooks";

/** The server's agents, and the agent of new conversations, which the user chooses. */
export interface Agents {
  readonly agents: readonly AgentInfo[];
  /** Version of the server, which sends it with the agents; "" if it is not known. */
  readonly version: string;
  /** Error of the last attempt to load the agents; null after a success. */
  readonly agentsError: string | null;
  /** The agent of new conversations: the last chosen one, which the browser stores, or the server's default. */
  readonly agent: AgentInfo | undefined;
  readonly chooseAgent: (name: string) => void;
}

export const AgentsContext = createContext<Agents | null>(null);

export const useAgents = () => useRequiredContext(AgentsContext);

export function AgentsProvider({ children }: { children: ReactNode }) {
  const { agents, version, error } = useAgentList();
  const [name, chooseAgent] = useStoredState("agent", "");
  const value = useMemo<Agents>(
    () => ({ agents, version, agentsError: error, agent: findAgent(agents, name), chooseAgent }),
    [agents, version, error, name, chooseAgent],
  );
  return <AgentsContext value={value}>{children}</AgentsContext>;
}
