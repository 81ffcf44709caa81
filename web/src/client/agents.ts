/** The server's agents. The list is requested until the server answers. */

import { useEffect, useState } from "react";
import { type AgentInfo, type AgentList, api } from "../wire/api";

export interface Agents {
  readonly agents: readonly AgentInfo[];
  /** Version of the server; "" if it is not known. */
  readonly version: string;
  readonly loaded: boolean;
  /** Why the list is not loaded yet. */
  readonly error: string | null;
}

const NO_AGENTS: Agents = { agents: [], version: "", loaded: false, error: null };
const MAX_DELAY_MS = 10_000;

export function useAgents(): Agents {
  const [agents, setAgents] = useState(NO_AGENTS);
  useEffect(() => {
    const abort = new AbortController();
    loadAgents(abort.signal, (error) => setAgents({ ...NO_AGENTS, error })).then(
      (list) => setAgents({ agents: list.agents, version: list.version ?? "", loaded: true, error: null }),
      () => {}, // aborted
    );
    return () => abort.abort();
  }, []);
  return agents;
}

/** Requests the list until the server answers; rejects only when `signal` aborts. */
export async function loadAgents(signal: AbortSignal, onError: (message: string) => void): Promise<AgentList> {
  for (let pause = 500; ; pause = Math.min(2 * pause, MAX_DELAY_MS)) {
    try {
      return await api.agents(signal);
    } catch (error) {
      signal.throwIfAborted();
      onError(error instanceof Error ? error.message : String(error));
    }
    await sleep(pause, signal);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The agent of this name, otherwise the default, otherwise the first. */
export function findAgent(agents: readonly AgentInfo[], name: string): AgentInfo | undefined {
  return agents.find((one) => one.name === name) ?? agents.find((one) => one.default) ?? agents[0];
}
