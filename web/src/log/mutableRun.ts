/**
 * A mutable copy of a run, to which the reducer applies records. Only the parts that change are copied.
 *
 * Within one batch of records each part is copied at most once, so that a long log is reduced in linear time. Unchanged
 * parts stay the same objects, so that React does not render them again.
 */

import type { AgentView, Item, OutputPiece, RunView, TerminalPiece, ToolItem } from "./viewModel";

/** Length above which a piece of terminal output is not extended, because appending copies its text. */
const MAX_PIECE_LENGTH = 64 * 1024;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An item without its key and index, which `MutableRun.add` sets. */
type NewItem<T extends Item = Item> = T extends Item ? Omit<T, "key" | "index"> : never;

export class MutableRun {
  readonly run: Mutable<RunView>;
  private readonly ownItems = new Set<number>();
  private readonly ownAgents = new Set<string>();
  private readonly ownLists = new Set<string>();
  private readonly ownOutputs = new Map<number, OutputBuffer>();
  private readonly ownFields = new Set<"items" | "open" | "agents" | "terminal">();

  constructor(run: RunView) {
    this.run = { ...run };
  }

  /** Appends an item and returns its index. Later records find the item by `name` until it is closed. */
  add(item: NewItem, name?: string): number {
    const index = this.run.items.length;
    this.items.push({ ...item, index, key: `${this.run.runId}/${index}` } as Item);
    this.ownItems.add(index);
    if (name !== undefined) this.open.set(name, index);
    this.listOf(item.agentId)?.push(index);
    return index;
  }

  /** Returns the index of the open item that was added with this name. */
  find(name: string): number | undefined {
    return this.run.open.get(name);
  }

  /** Removes the name of an open item and returns the item's index. */
  close(name: string): number | undefined {
    const index = this.run.open.get(name);
    if (index !== undefined) this.open.delete(name);
    return index;
  }

  item(index: number): Item | undefined {
    return this.run.items[index];
  }

  /** The item as a mutable copy; null if it does not exist or is not of one of these kinds. */
  edit<K extends Item["kind"]>(index: number | undefined, ...kinds: K[]): Mutable<Extract<Item, { kind: K }>> | null {
    const item = index === undefined ? undefined : this.run.items[index];
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

  /** The agent as a mutable copy; null if it does not exist. */
  agent(agentId: string): Mutable<AgentView> | null {
    const agent = this.run.agents.get(agentId);
    if (agent === undefined) return null;
    if (this.ownAgents.has(agentId)) return agent as Mutable<AgentView>;
    const own = { ...agent };
    this.agents.set(agentId, own);
    this.ownAgents.add(agentId);
    return own;
  }

  /** The number of the agent's current step; null between steps. */
  stepOf(agentId: string): number | null {
    const item = this.run.items[this.find(`step ${agentId}`) ?? -1];
    return item?.kind === "step" ? item.number : null;
  }

  /** The output of a call as a mutable copy, with its length in characters. */
  outputOf(tool: MutableToolItem): OutputBuffer {
    const known = this.ownOutputs.get(tool.index);
    if (known) return known;
    const pieces = tool.output.slice();
    const own = { pieces, size: pieces.reduce((sum, piece) => sum + piece.text.length, 0) };
    this.ownOutputs.set(tool.index, own);
    tool.output = pieces;
    return own;
  }

  /** Appends text to the terminal's content. Extends the last piece if it is of the same call and kind. */
  appendTerminal(item: number, kind: TerminalPiece["kind"], text: string): void {
    const { terminal } = this;
    const last = terminal.at(-1);
    if (last !== undefined && last.item === item && last.kind === kind && last.text.length < MAX_PIECE_LENGTH)
      terminal[terminal.length - 1] = { item, kind, text: last.text + text };
    else terminal.push({ item, kind, text });
  }

  /** Closes the to-do list of an agent when the agent ends; there is no end event for lists. */
  endTodos(agentId: string, isDone: boolean): void {
    const list = this.edit(this.close(`todos ${agentId}`), "todos");
    if (list) list.state = isDone ? "done" : "stopped";
  }

  /** Closes the items that are still open when the run ends. Their end records are in a gap of the log. */
  closeOpenItems(at: number): void {
    for (const index of this.run.open.values()) {
      const list = this.edit(index, "todos");
      if (list) list.state = "stopped";
      const plan = this.edit(index, "plan");
      if (plan) plan.isGrowing = false;
      const message = this.edit(index, "text", "thought");
      if (message) message.endedAt = at;
      const work = this.edit(index, "tool", "step");
      if (work) Object.assign(work, { state: "stopped", endedAt: at });
      const approval = this.edit(index, "approval");
      if (approval) Object.assign(approval, { decision: "reject", by: "system", decidedAt: at });
    }
    if (this.run.open.size > 0) this.open.clear();
    for (const { agentId, endedAt } of this.run.agents.values()) {
      const agent = agentId !== "" && endedAt === null ? this.agent(agentId) : null;
      if (agent) Object.assign(agent, { state: "stopped", endedAt: at });
    }
  }

  /** Whether any approval of the run is open. */
  get isWaiting(): boolean {
    for (const name of this.run.open.keys()) if (name.startsWith("approval ")) return true;
    return false;
  }

  private get items(): Item[] {
    if (this.needsCopy("items")) this.run.items = this.run.items.slice();
    return this.run.items as Item[];
  }

  private get open(): Map<string, number> {
    if (this.needsCopy("open")) this.run.open = new Map(this.run.open);
    return this.run.open as Map<string, number>;
  }

  private get agents(): Map<string, AgentView> {
    if (this.needsCopy("agents")) this.run.agents = new Map(this.run.agents);
    return this.run.agents as Map<string, AgentView>;
  }

  private get terminal(): TerminalPiece[] {
    if (this.needsCopy("terminal")) this.run.terminal = this.run.terminal.slice();
    return this.run.terminal as TerminalPiece[];
  }

  /** Whether a field must be copied before it is changed: true on the first call for each field. */
  private needsCopy(field: "items" | "open" | "agents" | "terminal"): boolean {
    const needsCopy = !this.ownFields.has(field);
    this.ownFields.add(field);
    return needsCopy;
  }

  /** Returns a mutable copy of the agent's list of item indices; that of the main agent if the agent is not known. */
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

export type MutableToolItem = Mutable<ToolItem>;

interface OutputBuffer {
  readonly pieces: OutputPiece[];
  size: number;
}
