/** Computes time, tool calls and tokens of each agent of a run, and their sums. */

import { type Progress, type RunView, type Tokens, tokensOf, tokensOfRun } from "../log/viewModel";
import { agentState, spanOf } from "./layout";

export interface AgentSummary {
  readonly agentId: string;
  readonly name: string;
  readonly model: string;
  readonly depth: number;
  readonly state: Progress;
  readonly ms: number;
  /** Start as a fraction of the run's duration. */
  readonly offset: number;
  /** Duration as a fraction of the run's duration. */
  readonly share: number;
  readonly tools: number;
  readonly tokens: Tokens;
}

export interface Summary {
  readonly agents: readonly AgentSummary[];
  readonly ms: number;
  readonly tools: number;
  readonly tokens: Tokens;
}

/** Returns the summary of a run. Its agents are in order of their start, each after its parent. */
export function summarize(run: RunView, now: number): Summary {
  const ms = spanOf(run, now);
  const children = new Map<string, string[]>();
  for (const agent of run.agents.values()) {
    if (agent.agentId === "") continue;
    const parent = run.agents.has(agent.parentId) && agent.parentId !== agent.agentId ? agent.parentId : "";
    const others = children.get(parent);
    if (others) others.push(agent.agentId);
    else children.set(parent, [agent.agentId]);
  }
  const agents: AgentSummary[] = [];
  const todo = [{ agentId: "", depth: 0 }];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const { agentId, depth } = next;
    const agent = run.agents.get(agentId);
    if (agent === undefined) continue;
    const begin = Math.min(ms, Math.max(0, agent.startedAt - run.startedAt));
    const end = (agent.endedAt ?? run.startedAt + ms) - run.startedAt;
    const duration = Math.max(0, Math.min(end, ms) - begin);
    agents.push({
      agentId,
      depth,
      name: agent.label || "agent",
      model: agent.model,
      state: agentState(run, agent),
      ms: duration,
      offset: ms > 0 ? begin / ms : 0,
      share: ms > 0 ? duration / ms : 0,
      tools: agent.tools,
      tokens: tokensOf(agent),
    });
    for (const child of (children.get(agentId) ?? []).toReversed()) todo.push({ agentId: child, depth: depth + 1 });
  }
  return { agents, ms, tools: run.tools, tokens: tokensOfRun(run) };
}
