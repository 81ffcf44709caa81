/** Fetches the complete arguments, output and result of truncated tool calls, so that they can be searched. */

import { valueText } from "../log/displayText";
import type { Item, RunView, ToolItem } from "../log/viewModel";
import { api, type ToolCall } from "./api";
import { Store } from "./store";

export const MAX_CONCURRENT = 4;
/** Size in bytes above which a call is not fetched. */
export const MAX_RESULT = 5 * 1024 * 1024;
/** Limit of all fetched texts together, in characters. Above it, the least recently used are dropped. */
const MAX_KEPT = 64 * 1024 * 1024;

export interface SearchTextsState {
  /** Returns the complete text of a call; undefined if it has not been fetched. */
  readonly textOf: (item: Item) => string | undefined;
  readonly pending: number;
  readonly failed: number;
  /** Number of calls that are too large to be fetched. */
  readonly tooLarge: number;
}

type Fetch = (runId: string, callId: string) => Promise<ToolCall>;

interface Queued {
  readonly key: string;
  readonly runId: string;
  readonly callId: string;
}

const NOTHING_FETCHED: SearchTextsState = { textOf: () => undefined, pending: 0, failed: 0, tooLarge: 0 };

export class SearchTexts extends Store<SearchTextsState> {
  private readonly kept = new Map<string, string>();
  /** Keys of all calls that were requested. Failed and dropped ones are requested again only by `retry`. */
  private readonly requested = new Set<string>();
  private readonly failed = new Set<string>();
  private readonly tooLarge = new Set<string>();
  private queued: Queued[] = [];
  private fetching = 0;
  private size = 0;

  constructor(
    private readonly fetchCall: Fetch = api.toolCall,
    private readonly maxKept = MAX_KEPT,
  ) {
    super(NOTHING_FETCHED);
  }

  /** Requests each call that is truncated and finished, unless it was requested before. */
  request(runs: readonly RunView[]): void {
    const before = this.requested.size;
    for (const run of runs) for (const item of run.items) if (item.kind === "tool") this.requestOne(run, item);
    if (this.requested.size === before) return;
    this.fetchMore();
    this.notify();
  }

  /** Requests failed and dropped calls again. */
  retry(runs: readonly RunView[]): void {
    const pending = new Set(this.queued.map(({ key }) => key));
    for (const key of this.requested) if (!this.kept.has(key) && !pending.has(key)) this.requested.delete(key);
    this.failed.clear();
    this.request(runs);
  }

  /** Cancels the requests that have not been sent yet. */
  cancelQueued(): void {
    if (this.queued.length === 0) return;
    for (const { key } of this.queued) this.requested.delete(key);
    this.queued = [];
    this.notify();
  }

  private requestOne(run: RunView, item: ToolItem): void {
    if (item.endedAt === null || !isTruncated(item) || this.requested.has(item.key)) return;
    this.requested.add(item.key);
    if (Math.max(item.resultTruncation?.size ?? 0, item.argsTruncation?.size ?? 0) > MAX_RESULT)
      this.tooLarge.add(item.key);
    else this.queued.push({ key: item.key, runId: run.runId, callId: item.callId });
  }

  private fetchMore(): void {
    while (this.fetching < MAX_CONCURRENT) {
      const next = this.queued.shift();
      if (next === undefined) return;
      this.fetching += 1;
      void this.fetchOne(next);
    }
  }

  private async fetchOne({ key, runId, callId }: Queued): Promise<void> {
    let text: string | null = null;
    try {
      text = fullText(await this.fetchCall(runId, callId));
    } catch {
      // Counted as failed. The search then covers only the text in the log.
    }
    this.fetching -= 1;
    if (text === null) this.failed.add(key);
    else this.keep(key, text);
    this.fetchMore();
    this.notify();
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

  private notify(): void {
    const { queued, fetching, failed, tooLarge } = this;
    // A new function for each state, so that memoized searches run again.
    const textOf = (item: Item) => this.find(item.key);
    this.set({ textOf, pending: queued.length + fetching, failed: failed.size, tooLarge: tooLarge.size });
  }
}

function isTruncated(item: ToolItem): boolean {
  return item.resultTruncation !== null || item.argsTruncation !== null || item.outputDropped > 0;
}

function fullText(call: ToolCall): string {
  const parts = [call.args === null ? "" : valueText(call.args), call.output, valueText(call.result)];
  return parts.filter(Boolean).join("\n").slice(0, MAX_RESULT);
}
