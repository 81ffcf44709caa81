/** Converts a conversation to a flat list of rows, which the virtual list of the chat shows. Pure. */

import type { OutboxMessage } from "../client/outbox";
import { type ApprovalItem, type Item, type RunView, type SessionView, startedAgents } from "../log/viewModel";

export type Row =
  | { readonly kind: "gap"; readonly key: string; readonly from: number; readonly to: number }
  | { readonly kind: "user"; readonly key: string; readonly run: RunView }
  | { readonly kind: "steps"; readonly key: string; readonly run: RunView; readonly isExpanded: boolean }
  | {
      readonly kind: "item";
      readonly key: string;
      readonly run: RunView;
      readonly item: Item;
      readonly isAnswer: boolean;
    }
  | { readonly kind: "subAgents"; readonly key: string; readonly run: RunView; readonly items: readonly Item[] }
  | { readonly kind: "answer"; readonly key: string; readonly run: RunView }
  | { readonly kind: "approval"; readonly key: string; readonly run: RunView; readonly approval: ApprovalItem }
  | { readonly kind: "end"; readonly key: string; readonly run: RunView }
  | { readonly kind: "pending"; readonly key: string; readonly message: OutboxMessage };

type ItemRow = Extract<Row, { kind: "item" }>;
type UserRow = Extract<Row, { kind: "user" }>;

/** Builds the rows of a conversation. Rows that did not change since the last call stay the same objects. */
export class RowBuilder {
  private readonly cache = new WeakMap<RunView, { isExpanded: boolean; rows: readonly Row[] }>();
  /** The rows of the last call's newest run. While the run grows, most of them are reused. */
  private last: { readonly runId: string; readonly rows: readonly Row[] } = { runId: "", rows: [] };

  build(view: SessionView, pending: readonly OutboxMessage[], isExpanded: (run: RunView) => boolean): Row[] {
    const rows: Row[] = view.gaps.map(({ from, to }) => ({ kind: "gap", key: `gap ${from}`, from, to }));
    for (const run of view.runs) for (const row of this.rowsOf(run, isExpanded(run))) rows.push(row);
    for (const message of pending) rows.push({ kind: "pending", key: message.requestId, message });
    return rows;
  }

  private rowsOf(run: RunView, isExpanded: boolean): readonly Row[] {
    const cached = this.cache.get(run);
    if (cached?.isExpanded === isExpanded) return cached.rows;
    const rows = buildRunRows(run, isExpanded, this.last.runId === run.runId ? this.last.rows : []);
    this.cache.set(run, { isExpanded, rows });
    this.last = { runId: run.runId, rows };
    return rows;
  }
}

/** The rows of a run. A row of `before` is reused if the new row at the same index would be equal. */
export function buildRunRows(run: RunView, isExpanded: boolean, before: readonly Row[] = []): readonly Row[] {
  const rows: Row[] = [userRow(run, before[0])];
  const items = visibleItems(run, "");
  const streamed = streamedAnswer(run, items);
  const hasSteps = items.some((item) => item !== streamed && isCollapsible(item));
  if (hasSteps) rows.push({ kind: "steps", key: `${run.runId} steps`, run, isExpanded });
  for (const { first, subAgents } of groupSubAgents(run, items)) {
    const isAnswer = first === streamed;
    if (!isExpanded && !isAnswer && isCollapsible(first)) continue;
    if (subAgents !== null) rows.push({ kind: "subAgents", key: first.key, run, items: subAgents });
    else rows.push(itemRow(run, first, isAnswer, before[rows.length]));
  }
  if (run.answer !== null && streamed === null) rows.push({ kind: "answer", key: `${run.runId} answer`, run });
  for (const approval of openApprovals(run))
    rows.push({ kind: "approval", key: `${approval.key} asks`, run, approval });
  rows.push({ kind: "end", key: `${run.runId} end`, run });
  return rows;
}

function userRow(run: RunView, old: Row | undefined): UserRow {
  const isSame =
    old?.kind === "user" &&
    old.run.runId === run.runId &&
    old.run.input === run.input &&
    old.run.inputTruncation === run.inputTruncation &&
    old.run.attachments === run.attachments;
  return isSame ? old : { kind: "user", key: `${run.runId} user`, run };
}

/** The row of an item. The old row is reused if the item is unchanged, except for an answer: its sources may change. */
function itemRow(run: RunView, item: Item, isAnswer: boolean, old: Row | undefined): ItemRow {
  const isSame = old?.kind === "item" && old.item === item && old.isAnswer === isAnswer;
  if (isSame && (!isAnswer || run.answer === null)) return old;
  return { kind: "item", key: item.key, run, item, isAnswer };
}

/** Returns the items of an agent that are shown as rows, in order. */
export function visibleItems(run: RunView, agentId: string): readonly Item[] {
  const places = run.agents.get(agentId)?.items ?? [];
  let steps = 0;
  for (const place of places) if (run.items[place]?.kind === "step") steps += 1;
  const items: Item[] = [];
  for (const place of places) {
    const item = run.items[place];
    if (item !== undefined && isShown(item, steps)) items.push(item);
  }
  return items;
}

/** Whether an item is shown as a row. `steps` is the number of steps of its agent. */
function isShown(item: Item, steps: number): boolean {
  switch (item.kind) {
    case "source":
      return false; // listed below the answer
    case "approval":
      // An open approval has a row at the end of the run; the approval of a call is shown in the call's details.
      return item.decision !== null && item.callId === "";
    case "step":
      return steps > 1; // a single step needs no heading
    case "text":
    case "thought":
    case "tool":
    case "agent":
    case "plan":
    case "todos":
    case "status":
    case "artifact":
      return true;
    default:
      item satisfies never;
      return true;
  }
}

/** Whether an item is hidden while the steps of its run are collapsed. */
function isCollapsible(item: Item): boolean {
  switch (item.kind) {
    case "artifact":
      return false;
    case "text":
    case "thought":
    case "tool":
    case "agent":
    case "plan":
    case "todos":
    case "step":
    case "status":
    case "approval":
    case "source":
      return true;
    default:
      item satisfies never;
      return true;
  }
}

/** Returns the item with the streamed answer, or the last text of a run that has no answer yet. */
function streamedAnswer(run: RunView, items: readonly Item[]): Item | null {
  if (run.answer !== null) return run.answer.item === null ? null : (run.items[run.answer.item] ?? null);
  for (let place = items.length - 1; place >= 0; place--) {
    const item = items[place];
    if (item?.kind === "text") return item;
    if (item?.kind !== "step" && item?.kind !== "artifact" && item?.kind !== "status") return null;
  }
  return null;
}

export interface Group {
  readonly first: Item;
  /** The items of sub-agents that are shown side by side, including `first`; null if `first` started no sub-agent. */
  readonly subAgents: readonly Item[] | null;
}

/**
 * Groups sub-agents that worked at the same time, at the position of the first one.
 *
 * A sub-agent that starts while another runs joins its group; other items of the agent come after the group. The
 * order never depends on when something ends, so rows do not move when it does.
 */
export function groupSubAgents(run: RunView, items: readonly Item[]): readonly Group[] {
  const groups: Group[] = [];
  let parallel: Item[] = [];
  let until = Number.NEGATIVE_INFINITY;
  for (const item of items) {
    if (startedAgents(run, item).length === 0) {
      groups.push({ first: item, subAgents: null });
      continue;
    }
    if (until <= item.at) {
      parallel = [];
      groups.push({ first: item, subAgents: parallel });
    }
    parallel.push(item);
    until = Math.max(until, endOf(run, item));
  }
  return groups;
}

function endOf(run: RunView, item: Item): number {
  const ended = item.kind === "tool" ? item.endedAt : item.kind === "agent" ? run.agents.get(item.childId)?.endedAt : 0;
  return ended ?? Number.POSITIVE_INFINITY;
}

function openApprovals(run: RunView): readonly ApprovalItem[] {
  if (run.state !== "waiting") return [];
  return run.items.filter((item): item is ApprovalItem => item.kind === "approval" && item.decision === null);
}

/** The main agent's item that contains this item: the item itself, or the item that started its sub-agent. */
export function outermostItem(run: RunView, item: Item): Item {
  let found = item;
  for (
    let agent = run.agents.get(item.agentId);
    agent && agent.agentId !== "";
    agent = run.agents.get(agent.parentId)
  ) {
    const { agentId, callId } = agent;
    const starter = run.items.find(
      (one) =>
        (one.kind === "tool" && callId !== "" && one.callId === callId) ||
        (one.kind === "agent" && one.childId === agentId),
    );
    if (starter !== undefined) found = starter;
  }
  return found;
}

/** Index of the row that shows an item; -1 if no row does, e.g. while the steps are collapsed. */
export function rowIndexOf(rows: readonly Row[], run: RunView, item: Item): number {
  const outer = outermostItem(run, item);
  return rows.findIndex((row) => {
    if (row.kind === "item") return row.item.key === outer.key;
    if (row.kind === "subAgents") return row.items.some((one) => one.key === outer.key);
    return row.kind === "approval" && row.approval.key === item.key;
  });
}
