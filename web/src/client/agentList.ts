/** Loads the server's list of agents. */

import { useEffect, useState } from "react";
import { type AgentInfo, type AgentList, api, errorMessage } from "./api";
import { retry } from "./retry";

interface AgentListState {
  readonly agents: readonly AgentInfo[];
  /** Version of the server; "" if it is not known. */
  readonly version: string;
  /** Error of the last attempt to load the list; null after a success. */
  readonly error: string | null;
}

const NO_AGENTS: AgentListState = { agents: [], version: "", error: null };

/** Loads the list when the component is mounted. `app/AgentsContext.tsx` passes it to the page. */
export function useAgentList(): AgentListState {
  const [agents, setAgents] = useState(NO_AGENTS);
  useEffect(() => {
    const abort = new AbortController();
    loadAgents(abort.signal, (error) => setAgents({ ...NO_AGENTS, error })).then(
      (list) => setAgents({ agents: list.agents, version: list.version ?? "", error: null }),
      () => {}, // aborted by unmounting
    );
    return () => abort.abort();
  }, []);
  return agents;
}

/** Requests the list of agents until the server answers. Rejects only when `signal` aborts. */
export function loadAgents(signal: AbortSignal, onError: (message: string) => void): Promise<AgentList> {
  return retry(() => api.agents(signal), {
    signal,
    firstDelayMs: 500,
    maxDelayMs: 10_000,
    onError: (error) => onError(errorMessage(error)),
  });
}

/** The agent of this name, otherwise the default agent, otherwise the first one. */
export function findAgent(agents: readonly AgentInfo[], name: string): AgentInfo | undefined {
  return agents.find((one) => one.name === name) ?? agents.find((one) => one.default) ?? agents[0];
}
