/** The server's agents. The list is requested until the server answers. */

import { useEffect, useState } from "react";
import { type AgentInfo, type AgentList, api, errorMessage } from "../wire/api";
import { retry } from "./retry";

export interface Agents {
  readonly agents: readonly AgentInfo[];
  /** Version of the server; "" if it is not known. */
  readonly version: string;
  /** Why the list is not loaded yet. */
  readonly error: string | null;
}

const NO_AGENTS: Agents = { agents: [], version: "", error: null };

export function useAgents(): Agents {
  const [agents, setAgents] = useState(NO_AGENTS);
  useEffect(() => {
    const abort = new AbortController();
    loadAgents(abort.signal, (error) => setAgents({ ...NO_AGENTS, error })).then(
      (list) => setAgents({ agents: list.agents, version: list.version ?? "", error: null }),
      () => {}, // aborted
    );
    return () => abort.abort();
  }, []);
  return agents;
}

/** Requests the list until the server answers; rejects only when `signal` aborts. */
export function loadAgents(signal: AbortSignal, onError: (message: string) => void): Promise<AgentList> {
  return retry(() => api.agents(signal), {
    signal,
    firstDelayMs: 500,
    maxDelayMs: 10_000,
    onError: (error) => onError(errorMessage(error)),
  });
}

/** The agent of this name, otherwise the default, otherwise the first. */
export function findAgent(agents: readonly AgentInfo[], name: string): AgentInfo | undefined {
  return agents.find((one) => one.name === name) ?? agents.find((one) => one.default) ?? agents[0];
}
