/**
 * Computes the rows of the timeline for a run, with their bars. Pure.
 *
 * All times are ms since the run's start. An item without an end extends to now, or to the end of the run.
 */

import { truncateLine } from "../log/displayText";
import type { AgentView, ApprovalItem, Item, Progress, RunView, StepItem, Tokens } from "../log/viewModel";
import { isRunning, tokensOf } from "../log/viewModel";

interface RowName {
  readonly label: string;
  readonly about: string;
}

/** Number of characters in which the first line of a text is searched, so that a long text is not read completely. */
const SEARCHED_LENGTH = 400;

function rowName(item: Item, run: RunView): RowName {
  switch (item.kind) {
    case "tool":
      return { label: item.name || "tool", about: item.summary };
    case "step":
      return { label: stepName(item.stepKind, item.number), about: item.error ?? "" };
    case "thought":
      return { label: "Thinking", about: firstLine(item.text) };
    case "text":
      return { label: run.answer?.item === item.index ? "Answer" : "Text", about: firstLine(item.text) };
    case "approval":
      return { label: "Approval", about: [item.name, item.summary].filter(Boolean).join(" ") };
    default:
      return { label: item.kind, about: "" };
  }
}

function stepName(kind: string, number: number): string {
  return kind === "action" || kind === ""
    ? `Step ${number}`
    : `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${number}`;
}

function firstLine(text: string): string {
  return truncateLine(text.slice(0, SEARCHED_LENGTH));
}

interface Span {
  readonly begin: number;
  readonly end: number;
}

/** A part of a bar: writing the arguments (`write`), waiting for an approval (`wait`), or running (`work`). */
export interface Part extends Span {
  readonly kind: "write" | "wait" | "work";
}

export interface TimelineRow extends Span {
  readonly key: string;
  readonly kind: "agent" | "step" | "tool" | "text" | "thought" | "approval";
  readonly depth: number;
  /** Whether the item still runs, so that `end` is now. */
  readonly isOpen: boolean;
  readonly state: Progress;
  readonly label: string;
  /** One line that describes the item. */
  readonly about: string;
  /** The item that a click selects; null for the main agent. */
  readonly item: Item | null;
  readonly parts: readonly Part[];
  readonly tokens: Tokens | null;
}

type NewTimelineRow = Pick<TimelineRow, "kind" | "key" | "depth" | "item" | "state" | "tokens">;

export interface Timeline {
  readonly rows: readonly TimelineRow[];
  /** Duration of the run, in ms. */
  readonly span: number;
  readonly isRunning: boolean;
}

type Entry = { readonly depth: number; readonly agent: AgentView; readonly item: Item | null };

interface Extent extends Span {
  readonly isOpen: boolean;
}

/** The state of an agent. The main agent waits while its run waits; in an ended run no agent is running. */
export function agentState(run: RunView, agent: AgentView): Progress {
  if (run.state === "waiting" && agent.agentId === "") return "waiting";
  return finalState(agent.state, isRunning(run));
}

/** The state of an item; `stopped` if the log left it open although its run has ended. */
function finalState(state: Progress, isLive: boolean): Progress {
  return !isLive && (state === "running" || state === "waiting") ? "stopped" : state;
}

export function spanOf(run: RunView, now: number): number {
  return Math.max(0, (run.endedAt ?? (isRunning(run) ? Math.max(now, run.lastAt) : run.lastAt)) - run.startedAt);
}

export function layout(run: RunView, now: number, cache: RowCache = new WeakMap()): Timeline {
  const builder = new TimelineBuilder(run, now, cache);
  const main = run.agents.get("");
  // An explicit stack instead of recursion: agents may be nested deeply.
  const todo: Entry[] = main === undefined ? [] : [{ depth: 0, agent: main, item: null }];
  const seen = new Set<string>();
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const { agent, depth, item } = next;
    if (item === null || item.kind === "agent") {
      const child = item === null ? agent : run.agents.get(item.childId);
      if (child === undefined || seen.has(child.agentId)) continue;
      seen.add(child.agentId);
      builder.addAgent(child, depth, item ?? builder.startOf(child));
      for (const entry of entriesOf(run, child, depth + 1).reverse()) todo.push(entry);
      continue;
    }
    builder.addItem(item, depth);
    if (item.kind !== "tool") continue;
    for (const agentId of item.agentIds.toReversed()) {
      const child = run.agents.get(agentId);
      if (child !== undefined) todo.push({ depth: depth + 1, agent: child, item: null });
    }
  }
  return { rows: builder.rows, span: builder.span, isRunning: isRunning(run) };
}

/** The items of an agent in order of their start. Items of a step are nested below the step. */
function entriesOf(run: RunView, agent: AgentView, depth: number): Entry[] {
  const entries: Entry[] = [];
  let step: StepItem | null = null;
  for (const index of agent.items) {
    const item = run.items[index];
    if (item === undefined) continue;
    if (item.kind === "step") step = item;
    const isInside = step !== null && item !== step && belongsTo(item, step);
    entries.push({ depth: isInside ? depth + 1 : depth, agent, item });
  }
  return entries;
}

function belongsTo(item: Item, step: StepItem): boolean {
  if (item.kind === "tool" && item.step !== null) return item.step === step.number;
  return step.endedAt === null || item.at < step.endedAt;
}

interface EndedRow {
  readonly row: TimelineRow | null;
  readonly startedAt: number;
  readonly depth: number;
  readonly isAnswer: boolean;
}

/** A cache of the rows of ended items, which do not change. A live run is laid out several times a second. */
export type RowCache = WeakMap<Item, EndedRow>;

function hasEnded(item: Item): boolean {
  if (item.kind === "approval") return item.decidedAt !== null;
  return !("endedAt" in item) || item.endedAt !== null;
}

class TimelineBuilder {
  readonly rows: TimelineRow[] = [];
  readonly span: number;
  private readonly questions = new Map<string, ApprovalItem[]>();
  private readonly calls = new Map<string, Item>();
  private readonly live: boolean;

  constructor(
    private readonly run: RunView,
    now: number,
    private readonly endedRows: RowCache,
  ) {
    this.span = spanOf(run, now);
    this.live = isRunning(run);
    for (const item of run.items) {
      if (item.kind === "tool") this.calls.set(item.callId, item);
      if (item.kind !== "approval") continue;
      const others = this.questions.get(item.callId);
      if (others) others.push(item);
      else this.questions.set(item.callId, [item]);
    }
  }

  /** Returns the call that started an agent; null if no call did. */
  startOf(agent: AgentView): Item | null {
    return agent.callId ? (this.calls.get(agent.callId) ?? null) : null;
  }

  addAgent(agent: AgentView, depth: number, item: Item | null): void {
    const extent = this.extent(agent.startedAt, agent.endedAt);
    const name = { label: agent.label || "agent", about: extent.isOpen ? agent.status : (agent.error ?? "") };
    const key = `agent ${agent.agentId}`;
    const state = agentState(this.run, agent);
    this.add({ kind: "agent", key, depth, item, state, tokens: tokensOf(agent) }, extent, name);
  }

  addItem(item: Item, depth: number): void {
    const { startedAt, answer } = this.run;
    const isAnswer = answer?.item === item.index;
    const known = this.endedRows.get(item);
    if (known && known.startedAt === startedAt && known.depth === depth && known.isAnswer === isAnswer) {
      if (known.row) this.rows.push(known.row);
      return;
    }
    const place = this.rows.length;
    this.writeItem(item, depth);
    if (hasEnded(item)) this.endedRows.set(item, { row: this.rows[place] ?? null, startedAt, depth, isAnswer });
  }

  private writeItem(item: Item, depth: number): void {
    const { key } = item;
    const name = rowName(item, this.run);
    switch (item.kind) {
      case "tool":
      case "step": {
        const { kind, state } = item;
        const tokens = item.kind === "step" ? item.tokens : null;
        this.add({ kind, key, depth, item, state, tokens }, this.extent(item.at, item.endedAt), name);
        return;
      }
      case "text":
      case "thought": {
        const extent = this.extent(item.at, item.endedAt);
        if (extent.end <= extent.begin && !extent.isOpen) return;
        const state = extent.isOpen ? "running" : item.endedAt === null ? "stopped" : "done";
        this.add({ kind: item.kind, key, depth, item, state, tokens: null }, extent, name);
        return;
      }
      case "approval": {
        if (this.calls.has(item.callId)) return;
        const extent = this.extent(item.at, item.decidedAt);
        const decided = item.decision === "reject" ? "rejected" : "done";
        const state = item.decision !== null ? decided : extent.isOpen ? "waiting" : "stopped";
        this.add({ kind: "approval", key, depth, item, state, tokens: null }, extent, name);
      }
    }
  }

  private add(
    { kind, key, depth, item, state, tokens }: NewTimelineRow,
    extent: Extent,
    { label, about }: RowName,
  ): void {
    const { begin, end, isOpen } = extent;
    const hasTokens = tokens !== null && tokens.input + tokens.output > 0;
    this.rows.push({
      kind,
      key,
      depth,
      item,
      begin,
      end,
      isOpen,
      label,
      about,
      state: finalState(state, this.live),
      tokens: hasTokens ? tokens : null,
      parts: this.partsOf(kind, extent, item),
    });
  }

  private extent(from: number, to: number | null): Extent {
    const begin = this.since(from);
    const end = to === null ? this.span : this.since(to);
    return { begin, end: Math.max(begin, end), isOpen: to === null && this.live };
  }

  private since(at: number): number {
    return Math.min(this.span, Math.max(0, at - this.run.startedAt));
  }

  private partsOf(kind: TimelineRow["kind"], { begin, end }: Span, item: Item | null): readonly Part[] {
    if (kind === "approval") return [{ kind: "wait", begin, end }];
    if (kind !== "tool" || item?.kind !== "tool") return [{ kind: "work", begin, end }];
    const parts: Part[] = [];
    let at = begin;
    for (const asked of this.questions.get(item.callId) ?? []) {
      const wait = this.extent(asked.at, asked.decidedAt);
      const from = Math.min(end, Math.max(at, wait.begin));
      const to = Math.min(end, Math.max(from, wait.end));
      parts.push(
        { kind: parts.length === 0 ? "write" : "work", begin: at, end: from },
        { kind: "wait", begin: from, end: to },
      );
      at = to;
    }
    const ran = item.args === null ? end : Math.min(end, Math.max(at, this.since(item.ranAt)));
    if (parts.length === 0) parts.push({ kind: "write", begin: at, end: ran });
    parts.push({ kind: "work", begin: Math.max(at, ran), end });
    const real = parts.filter((part) => part.end > part.begin);
    return real.length > 0 ? real : [{ kind: "work", begin, end }];
  }
}
