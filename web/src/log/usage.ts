/** Small values that several parts of the fold share. */

import type { AgentView, Cut, RunView, Tokens } from "./view";

export const NO_TOKENS: Tokens = { input: 0, output: 0 };

export function plus(one: Tokens, other: Tokens): Tokens {
  return { input: one.input + other.input, output: one.output + other.output };
}

/** Where the whole is of what an event carries only the beginning of. */
export function cutOf(event: { truncated?: boolean; size?: number; result_url?: string }): Cut | null {
  return event.truncated ? { size: event.size ?? 0, url: event.result_url ?? "" } : null;
}

/** What an agent cost: the sum of its requests, or what its steps said where single requests are not told. */
export function tokensOf(agent: AgentView): Tokens {
  return agent.usage.input + agent.usage.output > 0 ? agent.usage : agent.stepUsage;
}

export function tokensOfRun(run: RunView): Tokens {
  return [...run.agents.values()].map(tokensOf).reduce(plus, NO_TOKENS);
}
