/** Which agents the server has. They are asked for once; a server that does not answer is asked again. */

import { useEffect, useState } from "react";
import { type AgentInfo, type AgentList, api } from "../wire/api";

export interface Agents {
  readonly agents: readonly AgentInfo[];
  /** Of the server; "" if it does not say. */
  readonly version: string;
  readonly loaded: boolean;
  /** Why there are none yet. */
  readonly error: string | null;
}

const NONE: Agents = { agents: [], version: "", loaded: false, error: null };
const LONGEST_MS = 10_000;

export function useAgents(): Agents {
  const [agents, setAgents] = useState(NONE);
  useEffect(() => {
    const abort = new AbortController();
    loadAgents(abort.signal, (error) => setAgents({ ...NONE, error })).then(
      (list) => setAgents({ agents: list.agents, version: list.version ?? "", loaded: true, error: null }),
      () => {}, // nobody waits for it any more
    );
    return () => abort.abort();
  }, []);
  return agents;
}

/** The list, however long it takes; rejects only when `signal` says so. */
export async function loadAgents(signal: AbortSignal, onError: (message: string) => void): Promise<AgentList> {
  for (let pause = 500; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    try {
      return await api.agents(signal);
    } catch (error) {
      signal.throwIfAborted();
      onError(error instanceof Error ? error.message : String(error));
    }
    await rest(pause, signal);
  }
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The one that is chosen, or the default, or the first. */
export function findAgent(agents: readonly AgentInfo[], name: string): AgentInfo | undefined {
  return agents.find((one) => one.name === name) ?? agents.find((one) => one.default) ?? agents[0];
}
