/**
 * One run while Records are folded into it: a copy of what changes, and of nothing else.
 *
 * From outside folding is pure; inside one batch everything is copied once at most, so that a long log folds in linear
 * time. What was not touched keeps its identity, and the page draws nothing anew that kept it.
 */

import type { AgentView, Item, Progress, RunView, TerminalPiece, ToolItem } from "./view";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What distributes over the kinds of items: an item without its address. */
type NewItem<T extends Item = Item> = T extends Item ? Omit<T, "key" | "index"> : never;

export class RunDraft {
  readonly run: Mutable<RunView>;
  private readonly items: Item[];
  private readonly open: Map<string, number>;
  private readonly agents: Map<string, AgentView>;
  private readonly terminal: TerminalPiece[];
  private readonly ownItems = new Set<number>();
  private readonly ownAgents = new Set<string>();
  private readonly ownLists = new Set<string>();

  constructor(run: RunView) {
    this.items = run.items.slice();
    this.open = new Map(run.open);
    this.agents = new Map(run.agents);
    this.terminal = run.terminal.slice();
    this.run = { ...run, items: this.items, open: this.open, agents: this.agents, terminal: this.terminal };
  }

  /** Put an item behind the others; `name` is how Records to come will speak of it. */
  add(item: NewItem, name?: string): number {
    const index = this.items.length;
    this.items.push({ ...item, index, key: `${this.run.runId}/${index}` } as Item);
    this.ownItems.add(index);
    if (name !== undefined) this.open.set(name, index);
    this.listOf(item.agentId)?.push(index);
    return index;
  }

  find(name: string): number | undefined {
    return this.open.get(name);
  }

  close(name: string): number | undefined {
    const index = this.open.get(name);
    this.open.delete(name);
    return index;
  }

  item(index: number): Item | undefined {
    return this.items[index];
  }

  /** The item to be changed, if it is of that kind. */
  edit<K extends Item["kind"]>(index: number | undefined, ...kinds: K[]): Mutable<Extract<Item, { kind: K }>> | null {
    const item = index === undefined ? undefined : this.items[index];
    if (index === undefined || item === undefined || !(kinds as string[]).includes(item.kind)) return null;
    if (!this.ownItems.has(index)) {
      this.items[index] = { ...item };
      this.ownItems.add(index);
    }
    return this.items[index] as Mutable<Extract<Item, { kind: K }>>;
  }

  addAgent(agent: AgentView): void {
    this.agents.set(agent.agentId, agent);
    this.ownAgents.add(agent.agentId);
    this.ownLists.add(agent.agentId);
  }

  /** The agent to be changed. */
  agent(agentId: string): Mutable<AgentView> | null {
    const agent = this.agents.get(agentId);
    if (agent === undefined) return null;
    if (this.ownAgents.has(agentId)) return agent as Mutable<AgentView>;
    const own = { ...agent };
    this.agents.set(agentId, own);
    this.ownAgents.add(agentId);
    return own;
  }

  /** The number of the step that the agent is in. */
  stepOf(agentId: string): number | null {
    const item = this.edit(this.find(`step ${agentId}`), "step");
    return item === null ? null : item.number;
  }

  /** Write to the terminal, behind what the same call wrote before if nobody wrote in between. */
  print(item: number, kind: TerminalPiece["kind"], text: string): void {
    const last = this.terminal[this.terminal.length - 1];
    if (last !== undefined && last.item === item && last.kind === kind)
      this.terminal[this.terminal.length - 1] = { item, kind, text: last.text + text };
    else this.terminal.push({ item, kind, text });
  }

  /** Calls, steps and sub-agents that the end of the run cut off did not fail: they were stopped. */
  markCutOff(reason: string): void {
    const cut = (part: { state: Progress; error: string | null }) => part.state === "failed" && part.error === reason;
    for (let index = this.items.length - 1; index >= 0; index--) {
      const item = this.items[index];
      if ((item?.kind === "tool" || item?.kind === "step") && cut(item)) {
        const own = this.edit(index, "tool", "step");
        if (own) own.state = "stopped";
      }
    }
    for (const agent of this.agents.values()) {
      const own = cut(agent) ? this.agent(agent.agentId) : null;
      if (own) own.state = "stopped";
    }
  }

  /** Somebody still has to decide something. */
  get isWaiting(): boolean {
    for (const name of this.open.keys()) if (name.startsWith("approval ")) return true;
    return false;
  }

  private listOf(agentId: string): number[] | null {
    const agent = this.agent(agentId) ?? this.agent("");
    if (agent === null) return null;
    if (!this.ownLists.has(agent.agentId)) {
      agent.items = agent.items.slice();
      this.ownLists.add(agent.agentId);
    }
    return agent.items as number[];
  }
}

export type ToolDraft = Mutable<ToolItem>;
