/** Fetches the whole of calls of which the log has only the beginning, so that a search can look into all of it. */

import { argsText, valueText } from "../log/format";
import type { Item, RunView, ToolItem } from "../log/view";
import { api, type ToolCall } from "../wire/api";
import { Store } from "./store";

export const MAX_CONCURRENT = 4;
/** What is larger is not fetched for a search. */
export const MAX_RESULT = 5 * 1024 * 1024;
/** Characters that are kept of all calls together; those that were not looked at the longest go first. */
const MAX_KEPT = 64 * 1024 * 1024;

export interface FullResultsState {
  /** The whole of a call, if it is there. */
  readonly of: (item: Item) => string | undefined;
  readonly pending: number;
  readonly failed: number;
  /** Calls that are too large to be fetched for a search. */
  readonly tooLarge: number;
}

type Fetch = (runId: string, callId: string, signal: AbortSignal) => Promise<ToolCall>;

interface Wanted {
  readonly key: string;
  readonly runId: string;
  readonly callId: string;
}

export class FullResults {
  private readonly kept = new Map<string, string>();
  /** All that was ever asked for: what failed or had to go is not asked for again by itself. */
  private readonly asked = new Set<string>();
  private readonly failed = new Set<string>();
  private readonly tooLarge = new Set<string>();
  private waiting: Wanted[] = [];
  private fetching = 0;
  private size = 0;
  private abort = new AbortController();
  private readonly view: Store<FullResultsState>;
  readonly subscribe: (changed: () => void) => () => void;
  readonly getSnapshot: () => FullResultsState;

  constructor(
    private readonly fetchCall: Fetch = api.toolCall,
    private readonly maxKept = MAX_KEPT,
  ) {
    this.view = new Store(this.look());
    this.subscribe = this.view.subscribe;
    this.getSnapshot = this.view.getSnapshot;
  }

  /** Ask for all of these runs' calls that came cut and are finished, each once. */
  want(runs: readonly RunView[]): void {
    const before = this.asked.size;
    for (const run of runs) for (const item of run.items) if (item.kind === "tool") this.wantOne(run, item);
    if (this.asked.size === before) return;
    this.fetchMore();
    this.tell();
  }

  /** Ask again for what failed or had to go. */
  retry(runs: readonly RunView[]): void {
    const pending = new Set(this.waiting.map(({ key }) => key));
    for (const key of this.asked) if (!this.kept.has(key) && !pending.has(key)) this.asked.delete(key);
    this.failed.clear();
    this.want(runs);
  }

  /** The search is over: what has not been asked of the server yet is left. */
  rest(): void {
    if (this.waiting.length === 0) return;
    for (const { key } of this.waiting) this.asked.delete(key);
    this.waiting = [];
    this.tell();
  }

  /** Nobody looks any more: what is under way is given up, and nothing is kept. */
  dispose(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.waiting = [];
    this.fetching = 0;
    this.size = 0;
    for (const all of [this.kept, this.asked, this.failed, this.tooLarge]) all.clear();
    this.tell();
  }

  private wantOne(run: RunView, item: ToolItem): void {
    if (item.endedAt === null || !isTruncated(item) || this.asked.has(item.key)) return;
    this.asked.add(item.key);
    if (Math.max(item.resultTruncation?.size ?? 0, item.argsTruncation?.size ?? 0) > MAX_RESULT)
      this.tooLarge.add(item.key);
    else this.waiting.push({ key: item.key, runId: run.runId, callId: item.callId });
  }

  private fetchMore(): void {
    while (this.fetching < MAX_CONCURRENT) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.fetching += 1;
      void this.fetchOne(next, this.abort.signal);
    }
  }

  private async fetchOne({ key, runId, callId }: Wanted, signal: AbortSignal): Promise<void> {
    let text: string | null = null;
    try {
      text = wholeText(await this.fetchCall(runId, callId, signal));
    } catch {
      // It is counted, and the search goes on with what the log has.
    }
    if (signal.aborted) return;
    this.fetching -= 1;
    if (text === null) this.failed.add(key);
    else this.keep(key, text);
    this.fetchMore();
    this.tell();
  }

  private keep(key: string, text: string): void {
    this.kept.set(key, text);
    this.size += text.length;
    for (const [oldest, old] of this.kept) {
      if (this.size <= this.maxKept || oldest === key) break;
      this.kept.delete(oldest);
      this.size -= old.length;
    }
  }

  private find(key: string): string | undefined {
    const text = this.kept.get(key);
    if (text === undefined) return undefined;
    this.kept.delete(key);
    this.kept.set(key, text);
    return text;
  }

  private look(): FullResultsState {
    const { waiting, fetching, failed, tooLarge } = this;
    // A new function each time, so that what depends on it is computed anew when something has arrived.
    const of = (item: Item) => this.find(item.key);
    return { of, pending: waiting.length + fetching, failed: failed.size, tooLarge: tooLarge.size };
  }

  private tell(): void {
    this.view.set(this.look());
  }
}

export function isTruncated(item: ToolItem): boolean {
  return item.resultTruncation !== null || item.argsTruncation !== null || item.outputDropped > 0;
}

function wholeText(call: ToolCall): string {
  const parts = [call.args === null ? "" : argsText(call.args), call.output, valueText(call.result)];
  return parts.filter(Boolean).join("\n").slice(0, MAX_RESULT);
}
